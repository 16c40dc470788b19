"""Servers on this machine: how they listen, and how connections to them begin and end."""

import asyncio
import errno
import logging
import socket
import webbrowser
from collections.abc import Mapping, Sequence
from ipaddress import ip_address

import uvicorn
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from py_runtime.base.printing import print_plainly

REQUEST_SECONDS = 20  # within which a request is there, its body included
READ_SECONDS = 60  # within which a client takes something of what is left for it
MAX_CONNECTIONS = 256  # at a time


def listen(host: str, port: int) -> socket.socket:
    """Port 0 takes a free one; OSError, in words, where the port is taken or forbidden."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            reason = "it is taken; choose another with --port (make serve PORT=...)"
        else:
            reason = str(error.strerror).partition(" (while")[0]
        raise OSError(f"cannot listen on {host} port {port}: {reason}") from error
    # Its connections have this from it. An answer's body is sent after its headers: else it would
    # wait until those have arrived, which the other side may tell 40 ms later.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def in_brackets(host: str) -> str:
    """Return a host as addresses spell it: IPv6, which has colons of its own, in brackets."""
    return f"[{host}]" if ":" in host else host


def is_for_everybody(host: str) -> bool:
    """Return whether listening there takes connections from all of this machine's networks."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:  # a name
        return not host


def address_of(host: str, port: int) -> str:
    """Return where a browser or a client of this machine finds the server."""
    return f"http://{'localhost' if is_for_everybody(host) else in_brackets(host)}:{port}"


def notes_of(host: str, port: int, what: str) -> list[str]:
    """Return what to know of a server that others can reach: where it is, and what they can do."""
    if not is_for_everybody(host):
        return []
    return [
        f"and, for whoever reaches this machine, at its address and port {port}; {what}",
        "by a name it answers once that is given with --allow-host",
    ]


def config_of(app: ASGIApp) -> uvicorn.Config:
    """Return the settings of a quiet server that closes connections whose requests are late."""
    return uvicorn.Config(
        app,
        http=ImpatientProtocol,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=0,
    )


class ImpatientProtocol(H11Protocol):
    """Closes a connection whose next request is not there in time; an answer may take any.

    It is closed, too, when its client takes nothing of an answer for too long. Of too many
    connections, the one that has waited longest for its request makes room.
    """

    overdue: asyncio.TimerHandle | None = None
    reading: asyncio.TimerHandle | None = None
    left: int | None = None  # bytes that wait to be taken, while none can be added

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.watch()
        self.watch_reader()
        self.make_room()

    def handle_events(self) -> None:
        super().handle_events()
        self.watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.stop_watching()
        if self.reading is not None:
            self.reading.cancel()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.left = None  # the client has taken some, and more will be added

    def watch(self) -> None:
        """One request has one span of time, however many pieces it comes in."""
        if self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body:
            self.stop_watching()
        elif self.overdue is None and not self.transport.is_closing():
            # What is still being sent is sent: close() waits for that.
            self.overdue = self.loop.call_later(REQUEST_SECONDS, self.transport.close)

    def watch_reader(self) -> None:
        """Look from time to time whether the client has taken some of what is left, or end it.

        A transport that is closing sends what is left first, and would wait for ever.
        """
        answered = self.cycle is not None and self.cycle.response_complete
        is_full = self.flow.write_paused or answered or self.transport.is_closing()
        left = self.transport.get_write_buffer_size() if is_full else 0
        if left and left == self.left:
            self.transport.abort()
            return
        self.left = left
        self.reading = self.loop.call_later(READ_SECONDS, self.watch_reader)

    def make_room(self) -> None:
        """Close one connection where there are too many: an idle one, or else this one."""
        alive = [each for each in self.connections if not each.transport.is_closing()]
        if len(alive) > MAX_CONNECTIONS:
            waiting = {
                each.overdue.when(): each
                for each in alive
                if isinstance(each, ImpatientProtocol) and each.overdue is not None
            }
            waiting[min(waiting)].transport.close()

    def stop_watching(self) -> None:
        if self.overdue is not None:
            self.overdue.cancel()
            self.overdue = None


class WithHeaders:
    """Gives every answer these headers, errors included."""

    def __init__(self, app: ASGIApp, headers: Mapping[str, str]) -> None:
        self.app = app
        self.headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self.headers)
            await send(message)

        await self.app(scope, receive, send_with_headers)


class AnnouncingServer(uvicorn.Server):
    """Says its address once it listens, with what else there is to say; goes without a word."""

    def __init__(
        self,
        config: uvicorn.Config,
        address: str,
        more: Sequence[str] = (),
        open_browser: bool = False,
    ) -> None:
        super().__init__(config)
        self.address = address
        self.more = more
        self.open_browser = open_browser

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        print_plainly("\n".join((f"inpage is at {self.address}", *self.more, "Ctrl-C stops it")))
        if self.open_browser:
            asyncio.get_running_loop().run_in_executor(None, webbrowser.open, self.address)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop without complaints about connections that are cut, since the stop was asked for.

        The page resumes from what has arrived.
        """
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)
