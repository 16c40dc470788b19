"""Requests are answered under this server's own names only.

A page of elsewhere whose name its owner points at this machine has, to the browser, this server's
origin: it could read every model, and its own scripts would run beside them.
"""

from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

HTTP_PORT = 80


class OwnHosts:
    """`further`: names with a port, or without one for any port."""

    def __init__(self, app: ASGIApp, further: Iterable[str]) -> None:
        self.app = app
        self.further = {name.lower() for name in further}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = Headers(scope=scope).get("host", "").lower()
        own = own_hosts(scope)
        if host in own or self.further & {host, without_port(host)}:
            return await self.app(scope, receive, send)
        # Not as it came: whoever sent it chose the text.
        text = f"This server is {' or '.join(own)}, and not {host[:100]!a}. "
        advice = "If that is a name of it, start it with --allow-host and that name.\n"
        await PlainTextResponse(text + advice, status_code=421)(scope, receive, send)


def own_hosts(scope: Scope) -> list[str]:
    """Return the hosts that are certainly this server: localhost, and the address that was reached.

    Nobody can point an address elsewhere, as the owner of a name can.
    """
    address, port = scope["server"]
    names = ["localhost", f"[{address}]" if ":" in address else address]
    ending = "" if port == HTTP_PORT else f":{port}"
    return [name + ending for name in names]


def without_port(host: str) -> str:
    """`[::1]:8000` is `[::1]`."""
    name, colon, port = host.rpartition(":")
    return name if colon and (port.isdigit() or not port) else host
