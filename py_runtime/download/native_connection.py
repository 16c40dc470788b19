"""The native connection, by Python's own library: each request has a thread, and can be ended."""

import asyncio
import http.client
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import cache, partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

import numpy as np

from py_runtime.base import patience
from py_runtime.base.errors import NetworkError, RefusedError
from py_runtime.base.patience import Pace
from py_runtime.base.short_texts import short

TOKEN_HEADER = "Authorization"
FAULTS = (OSError, http.client.HTTPException)  # URLError is an OSError
BLOCK_SECONDS = 0.1  # after which a block that is not full is handed over, so that progress shows
T = TypeVar("T")


class NativeConnection:
    """A Connection; cancelling a request closes its socket."""

    async def open(self, url: str, headers: Mapping[str, str]) -> "_ReadAnswer":
        request = urllib.request.Request(url, headers=dict(headers))
        exchange = _Exchange()
        return await _in_time(url, exchange, partial(_ask, request, exchange))


def _ask(request: urllib.request.Request, exchange: "_Exchange") -> "_ReadAnswer":
    try:
        response = _opener(exchange).open(request, timeout=patience.STALLED_SECONDS)
    except urllib.error.HTTPError as error:  # an answer like any other
        if error.code // 100 == 3:
            error.close()
            raise _not_followed(request.full_url, error.headers.get("location", "")) from None
        response = error
    except FAULTS as error:
        raise _fault(request.full_url, error) from None
    if exchange.is_broken_off:
        response.close()
    return _ReadAnswer(response, exchange)


class _ReadAnswer:
    def __init__(self, response: Any, exchange: "_Exchange") -> None:
        self.status = int(response.status)
        self.headers = {name.lower(): text for name, text in response.headers.items()}
        self._response = response
        self._exchange = exchange
        self._pace = Pace(urlsplit(response.url).netloc)

    async def next_block(self, memory: np.ndarray) -> np.ndarray:
        self._pace.begin_waiting()
        read = partial(self._read, memory)
        count = await _in_time(self._response.url, self._exchange, read)
        self._pace.take(count)
        return memory[:count]

    def _read(self, memory: np.ndarray) -> int:
        """Fill the memory, or as much of it as comes within a moment."""
        began, filled = time.monotonic(), 0
        try:
            while filled < len(memory):
                data = self._response.read1(len(memory) - filled)
                if not data:
                    break
                memory[filled : filled + len(data)] = np.frombuffer(data, np.uint8)
                filled += len(data)
                if time.monotonic() - began > BLOCK_SECONDS:
                    break
        except FAULTS as error:
            raise _fault(self._response.url, error) from None
        return filled

    def close(self) -> None:
        self._exchange.break_off()  # or closing would wait for a read that another thread is in
        self._response.close()


# Breaking off ------------------------------------------------------------------------------------


class _Exchange:
    """The socket of a request, so that a thread that waits for it can be woken."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self.is_broken_off = False
        self._lock = threading.Lock()

    def use(self, connected: socket.socket) -> None:
        """Take the socket of this hop: each redirect has one of its own."""
        with self._lock:
            self._socket = connected
            if self.is_broken_off:
                raise ConnectionAbortedError("nobody waits for it any more")

    def break_off(self) -> None:
        with self._lock:
            self.is_broken_off = True
            if self._socket is not None:
                with suppress(OSError):  # it has ended by itself
                    self._socket.shutdown(socket.SHUT_RDWR)


async def _in_time(url: str, exchange: _Exchange, work: Callable[[], T]) -> T:
    """Run blocking work in a thread; break it off when it stalls or nobody waits for it any more.

    The thread is a daemon: where even closing the socket does not wake it, as while a name is
    looked up, the process still ends at once.
    """
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True, name="inpage-network").start()
    try:
        async with asyncio.timeout(patience.STALLED_SECONDS):
            return await asyncio.wrap_future(future)
    except TimeoutError:
        exchange.break_off()
        seconds = f"{patience.STALLED_SECONDS:g} seconds"
        raise NetworkError(f"{urlsplit(url).netloc} has sent nothing for {seconds}") from None
    except asyncio.CancelledError:
        exchange.break_off()
        raise


class _HttpConnection(http.client.HTTPConnection):
    def __init__(self, exchange: _Exchange, host: str, **options: Any) -> None:
        super().__init__(host, **options)
        self._exchange = exchange

    def connect(self) -> None:
        super().connect()
        self._exchange.use(self.sock)


class _HttpsConnection(_HttpConnection, http.client.HTTPSConnection):
    """An HTTP connection over TLS."""


class _HttpHandler(urllib.request.HTTPHandler):
    def __init__(self, exchange: _Exchange) -> None:
        super().__init__()
        self._exchange = exchange

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(_HttpConnection, self._exchange), req)


class _HttpsHandler(urllib.request.HTTPSHandler):
    def __init__(self, exchange: _Exchange) -> None:
        super().__init__(context=_tls())
        self._exchange = exchange

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        connection = partial(_HttpsConnection, self._exchange)
        return self.do_open(connection, req, context=_tls())


@cache
def _tls() -> ssl.SSLContext:
    """Return one context for all requests: reading the system's certificates takes a while."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _opener(exchange: _Exchange) -> urllib.request.OpenerDirector:
    """Return an opener for http and https alone; the library's own knows ftp, files and more."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _Redirects(),
        _HttpHandler(exchange),
        _HttpsHandler(exchange),
    ):
        opener.add_handler(handler)
    return opener


# Redirects and faults ----------------------------------------------------------------------------


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https, never from https to http, and at most ten.

    The library would tell the token to whoever it is led to.
    """

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        before, after = urlsplit(req.full_url), urlsplit(newurl)
        is_downgrade = before.scheme == "https" and after.scheme == "http"
        if after.scheme not in ("http", "https") or is_downgrade:
            fp.close()
            raise _not_followed(req.full_url, newurl)
        further = super().redirect_request(req, fp, code, msg, headers, newurl)
        if further is not None and after[:2] != before[:2]:
            further.remove_header(TOKEN_HEADER)
        return further


def _not_followed(url: str, target: str) -> RefusedError:
    """Return the error for a redirect that goes in circles, or leads where none may lead."""
    return RefusedError(
        f"{urlsplit(url).netloc} redirects to {short(target)}, which is not followed: only a few "
        "redirects are, to http and https, and none from https to http"
    )


def _fault(url: str, error: Exception) -> NetworkError:
    reason = getattr(error, "reason", None) or error
    return NetworkError(f"{urlsplit(url).netloc} did not answer, or not to the end: {reason}")
