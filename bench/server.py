"""The bench's server: the site as it is, and the bench's files beside it, from one origin."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from bench.files import PEERS, Files, bench_files
from inpage.http_server import listen
from serve import create_app, response_to
from tools.compress import VariantStore, may_pay
from tools.site import SECURITY_HEADERS, Resource, Site, from_file

# Peers need isolation for their threads; the rest of the product's policy would break them.
ISOLATION = {
    name: SECURITY_HEADERS[name]
    for name in ("Cross-Origin-Opener-Policy", "Cross-Origin-Embedder-Policy")
}


def create_bench_app(site: Site, files: Files, variants: VariantStore) -> ASGIApp:
    """Build the app that serves the site as serve.py does, with the bench's files beside it."""
    product = create_app(site, variants)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        url = scope["path"].removeprefix("/")
        resource = resource_of(url, files[url]) if url in files else None
        if resource is None:
            return await product(scope, receive, send)
        request = Request(scope)
        response: Response = response_to(request, resource, variants)
        response.headers.update(ISOLATION if url.startswith(f"{PEERS}/") else SECURITY_HEADERS)
        if StaticFiles().is_not_modified(response.headers, request.headers):
            response = NotModifiedResponse(response.headers)
        await response(scope, receive, send)

    return app


def resource_of(url: str, content: Path | bytes) -> Resource | None:
    """None where the file is not there."""
    if isinstance(content, bytes):
        sha256 = hashlib.sha256(content).hexdigest()
        return Resource(url, content, len(content), sha256[:32], sha256)
    path = content.resolve()
    return from_file(url, path.parent, [path.name])


@contextmanager
def serving(with_peers: bool) -> Iterator[str]:
    """Run a server in a thread and yield its address; peers' files are compressed as ours are."""
    files, variants = bench_files(with_peers), VariantStore()
    for url, content in files.items():
        resource = resource_of(url, content)
        if resource and resource.sha256 and may_pay(url, resource.size):
            variants.make(resource.sha256, resource.read())
    listener = listen("127.0.0.1", 0)
    config = uvicorn.Config(
        create_bench_app(Site.of_checkout(), files, variants),
        http="h11",
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join()
