"""The page of this checkout, with faults between the server and the browser."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from inpage.http_server import listen
from serve import create_app
from tools.compress import VariantStore
from tools.site import Site

ERROR, CUT, FLIP, HANG = "answers 500", "ends half-way", "has a wrong byte", "stops half-way"
WAIT = "stops half-way while it has this fault"
SHORT = "ends half-way as if it were whole"
PREFIX = "/models/"


class FaultySite:
    """A site whose `faults` say what is wrong with a file, by its path below models/.

    The rest is served well. Requests for a range, which is how headers are read, are served well in
    any case.
    """

    def __init__(self, app: ASGIApp, url: str) -> None:
        self.url = url
        self.faults: dict[str, str] = {}
        self.requests: list[str] = []  # files below models/, in order; ranges and all
        self.whole: list[str] = []  # those of them that were asked for without a range
        self.ranges: dict[str, str] = {}  # the last range that was asked of a file
        self.has_ranges = True  # some hosts know none
        self.broken_off: list[str] = []  # those that the browser did not wait for
        self._app = app

    def take_requests(self) -> set[str]:
        """Return the requests since the last call."""
        taken, self.requests = set(self.requests), []
        return taken

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if not path.startswith(PREFIX):
            return await self._app(scope, receive, send)
        file = path.removeprefix(PREFIX)
        self.requests.append(file)
        headers = [item for item in scope["headers"] if item[0] != b"accept-encoding"]
        if wanted := dict(headers).get(b"range"):
            self.ranges[file] = wanted.decode()
        else:
            self.whole.append(file)
        fault = None if wanted else self.faults.get(file)
        if not self.has_ranges:
            headers = [item for item in headers if item[0] != b"range"]
        if fault == ERROR:
            await send({"type": "http.response.start", "status": 500, "headers": []})
            return await send({"type": "http.response.body", "body": b"broken on purpose"})

        async def send_wrongly(message: Message) -> None:
            if fault == SHORT and message["type"] == "http.response.start":
                told = [item for item in message["headers"] if item[0] != b"content-length"]
                return await send({**message, "headers": told})
            body = message.get("body")
            if not body or fault is None:
                return await send(message)
            if fault == FLIP:
                return await send({**message, "body": body[:-1] + bytes([body[-1] ^ 1])})
            half = {"type": "http.response.body", "body": body[: len(body) // 2]}
            if fault == SHORT:
                return await send({**half, "more_body": message.get("more_body", False)})
            await send({**half, "more_body": True})
            if fault == WAIT:
                while self.faults.get(file) == WAIT:
                    await asyncio.sleep(0.01)
                return await send({**message, "body": body[len(body) // 2 :]})
            if fault == HANG:
                while (await receive())["type"] != "http.disconnect":
                    pass
                self.broken_off.append(file)
            raise ConnectionError("cut on purpose")

        await self._app({**scope, "headers": headers}, receive, send_wrongly)


@contextmanager
def serving_with_faults(models: Path) -> Iterator[FaultySite]:
    listener = listen("127.0.0.1", 0)
    app = create_app(Site.of_checkout(models), VariantStore())
    site = FaultySite(app, f"http://127.0.0.1:{listener.getsockname()[1]}/")
    config = uvicorn.Config(
        site, http="h11", ws="none", lifespan="off", log_config=None, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield site
    finally:
        server.should_exit = True
        thread.join()
