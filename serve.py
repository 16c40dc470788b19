"""The command `inpage serve`: serve the page, or write it as static files.

inpage serve [--host 127.0.0.1] [--port 8000] [--allow-host NAME] [--models DIR] [--no-hub]
inpage serve build OUT [--models DIR] [--no-hub]
"""

import argparse
import re
import sys
from collections.abc import Iterable
from email.utils import formatdate
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from inpage.hosts import OwnHosts
from inpage.http_server import (
    AnnouncingServer,
    address_of,
    config_of,
    in_brackets,
    listen,
    notes_of,
)
from py_runtime.base.defaults import device_of_environment
from py_runtime.base.errors import RequestError
from py_runtime.base.sizes import in_words
from tools.compress import ENCODINGS, VariantStore
from tools.errors import UserError, exit_status
from tools.site import HUB_ORIGINS, Resource, Site
from tools.static_build import build

# The bytes sent at once: a chunk costs a hop between threads, and weights are hundreds of MB.
CHUNK = 1 << 20
FOR_OTHERS = "they can read its models, but browsers give them WebGPU over https alone"


def create_app(site: Site, variants: VariantStore, further_hosts: Iterable[str] = ()) -> ASGIApp:
    """Build the app that answers GET and HEAD: ranges, caching and compressed variants included."""

    def answer(request: Request) -> Response:  # not async: it reads files, so it gets a thread
        resource = site.find(request.scope["path"].removeprefix("/"))
        if resource is None:
            raise HTTPException(404, "There is nothing at this address.")
        if request.method == "HEAD":
            ignore_range(request)
        response = response_to(request, resource, variants)
        if StaticFiles().is_not_modified(response.headers, request.headers):
            return NotModifiedResponse(response.headers)
        return response

    def explain(request: Request, error: Exception) -> Response:
        return PlainTextResponse(f"{error}\n", status_code=500)

    routes = [Route("/{url:path}", answer, methods=["GET", "HEAD"])]
    app = Starlette(routes=routes, exception_handlers={UserError: explain})
    return WithSecurityHeaders(OwnHosts(app, further_hosts), site)


def response_to(request: Request, resource: Resource, variants: VariantStore) -> Response:
    """Answer with a compressed variant if the browser takes one and asks for no range."""
    headers = {"Cache-Control": resource.cache_control, "ETag": f'"{resource.etag}"'}
    if isinstance(resource.content, bytes):
        return Response(resource.content, headers=headers, media_type=resource.media_type)

    path = resource.content
    encoded = variants.find(resource.sha256) if resource.sha256 else {}
    if encoded:
        headers["Vary"] = "Accept-Encoding"
    # A range counts bytes of the plain file, so it is never cut from a compressed one.
    if "range" not in request.headers:
        accepted = accepted_encodings(request.headers.get("accept-encoding", ""))
        encoding = next((name for name in ENCODINGS if name in encoded and name in accepted), None)
        if encoding:
            path = encoded[encoding]
            headers |= {"Content-Encoding": encoding, "ETag": f'"{resource.etag}-{encoding}"'}
    status = path.stat()
    if status.st_size <= CHUNK and "range" not in request.headers:
        date = formatdate(status.st_mtime, usegmt=True)
        headers |= {"Accept-Ranges": "bytes", "Last-Modified": date}
        return Response(path.read_bytes(), headers=headers, media_type=resource.media_type)
    return LargeFileResponse(
        path, headers=headers, media_type=resource.media_type, stat_result=status
    )


class LargeFileResponse(FileResponse):
    """A file that is sent in larger chunks, and not read before."""

    chunk_size = CHUNK


def accepted_encodings(header: str) -> set[str]:
    """Return the encodings of an Accept-Encoding header, less those with a quality of 0."""
    accepted = set()
    for item in header.lower().split(","):
        name, _, parameters = item.partition(";")
        if parameters.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000"):
            accepted.add(name.strip())
    return accepted


def ignore_range(request: Request) -> None:
    """RFC 9110 defines ranges for GET alone."""
    headers = request.scope["headers"]
    request.scope["headers"] = [item for item in headers if item[0] != b"range"]


class WithSecurityHeaders:
    """A wrapper that puts security headers on every answer, errors too."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self.app = app
        self.site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(self.site.headers_of(scope["path"].removeprefix("/")))
                headers.setdefault("Cache-Control", "no-store")  # only errors have none yet
            await send(message)

        await self.app(scope, receive, send_with_headers)


def serve(options: argparse.Namespace) -> None:
    """Serve the page until interrupted; port 0 takes a free one."""
    site = Site.of_checkout(options.models, tuple(options.hub), device_of_pages())
    listener = listen(options.host, options.port)
    port = listener.getsockname()[1]
    address = f"{address_of(options.host, port)}/"
    app = create_app(site, VariantStore(), [in_brackets(options.host), *options.allow_host])
    try:
        notes = notes_of(options.host, port, FOR_OTHERS)
        told = [*notes, *models_found(site)]
        AnnouncingServer(config_of(app), address, told, options.open).run(sockets=[listener])
    except KeyboardInterrupt:
        print()  # the terminal's ^C ends its own line


def device_of_pages() -> str | None:
    """Return the device that the environment names for the pages of this server."""
    try:
        return device_of_environment()
    except RequestError as error:
        raise UserError(str(error)) from None


def models_found(site: Site) -> list[str]:
    """Return a line for each model, or one that says there are none."""
    try:
        listing = site.models.listing()
    except UserError as error:
        return [str(error)]
    lines = [
        f"  {model['name']}, "
        + (f"cannot be loaded: {model['error']}" if "error" in model else in_words(model["size"]))
        for model in listing
    ]
    place = site.models.root or "models/"
    return [f"models in {place}:", *lines] if lines else [f"there are no models in {place} yet"]


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options that the arguments give."""
    parser = argparse.ArgumentParser(
        prog="inpage serve", description="Serve the page on this machine."
    )
    host_help = "address to listen on (%(default)s); from other machines WebGPU needs https"
    parser.add_argument("--host", default="127.0.0.1", help=host_help)
    parser.add_argument("--port", type=port, default=8000, help="port (%(default)s; 0: a free one)")
    allow_help = "a further name this server has, as a proxy's (may be given again)"
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help=allow_help
    )
    parser.add_argument("--models", type=Path, metavar="DIR", help="folder of models (models/)")
    parser.add_argument("--open", action="store_true", help="open the page in your browser")
    add_hub(parser, HUB_ORIGINS)
    commands = parser.add_subparsers(dest="command", metavar="build")
    builder = commands.add_parser("build", help="write the whole site as static files into OUT")
    builder.add_argument("out", type=Path, metavar="OUT", help="folder to write, or to write anew")
    builder.add_argument("--models", type=Path, metavar="DIR", default=argparse.SUPPRESS)
    add_hub(builder, argparse.SUPPRESS)
    return parser.parse_args(arguments)


def add_hub(parser: argparse.ArgumentParser, default: Any) -> None:
    """Add the options for the Hugging Face Hub: a mirror of it, or none."""
    which = parser.add_mutually_exclusive_group()
    mirror_help = "a mirror of the Hugging Face Hub, and further origins that it redirects to"
    which.add_argument(
        "--hub", type=origin, nargs="+", metavar="ADDRESS", default=default, help=mirror_help
    )
    no_help = "a page that connects to this server alone, and offers no models of the Hub"
    which.add_argument(
        "--no-hub", dest="hub", action="store_const", const=(), default=default, help=no_help
    )


def origin(text: str) -> str:
    """Check an origin, which becomes a part of the page's policy."""
    if not re.fullmatch(r"https?://(\*\.)?[A-Za-z0-9.-]+(:[0-9]+)?", text):
        raise ValueError
    return text


def port(text: str) -> int:
    """ValueError makes argparse refuse it."""
    number = int(text)
    if not 0 <= number <= 65535:
        raise ValueError
    return number


def main(arguments: list[str]) -> int:
    """Run the command and return the exit status."""
    options = parse(arguments)

    def work() -> None:
        if options.command == "build":
            site = Site.of_checkout(options.models, tuple(options.hub))
            build(site, options.out, VariantStore())
            print(f"the site is in {options.out}")
            for model in site.models.listing():
                if "error" in model:
                    print(
                        f"inpage: {model['path']} cannot be loaded: {model['error']}",
                        file=sys.stderr,
                    )
        else:
            serve(options)

    return exit_status(work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
