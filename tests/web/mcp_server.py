"""A small MCP server over streamable HTTP, with the ways in which servers differ and fail."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event
from typing import Any

TOKEN = "secret"
TOOLS = [
    {
        "name": "weather report",
        "description": "Tell the weather of a city.",
        "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
    {"name": "calculator", "title": "Abacus", "inputSchema": {"type": "object"}},
    {"name": "broken", "inputSchema": {"type": "object"}},
    {"name": "slow", "inputSchema": {"type": "object"}},
]


class McpHost(ThreadingHTTPServer):
    """`ways` are what it does otherwise: sse, plain (no MCP), closed (no CORS), token, huge."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.ways: set[str] = set()
        self.sessions: list[str] = []
        self.heard: list[tuple[str, dict[str, str], Any]] = []
        self.going_on = Event()
        self.url = f"http://127.0.0.1:{self.server_port}/mcp"

    def methods(self) -> list[str]:
        return [method for method, _, _ in self.heard]


class Handler(BaseHTTPRequestHandler):
    server: McpHost

    def do_OPTIONS(self) -> None:
        self.send_response(204)
        self.allow()
        self.end_headers()

    def allow(self) -> None:
        if "closed" in self.server.ways:
            return
        asked = self.headers.get("Access-Control-Request-Headers", "")
        self.send_header("Access-Control-Allow-Origin", self.headers["Origin"])
        self.send_header("Access-Control-Allow-Headers", asked)
        if "hidden" not in self.server.ways:
            self.send_header("Access-Control-Expose-Headers", "Mcp-Session-Id")

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method = message.get("method", "")
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.heard.append((method, headers, message))
        if "plain" in self.server.ways:
            return self.answer(200, "text/html", "<p>Hello</p>")
        if "token" in self.server.ways and headers.get("authorization") != f"Bearer {TOKEN}":
            return self.answer(401, "text/plain", "")
        if method == "initialize":
            self.server.sessions.append(f"session-{len(self.server.sessions)}")
        elif "mcp-session-id" not in headers:
            return self.answer(400, "text/plain", "")
        elif headers["mcp-session-id"] != self.server.sessions[-1]:
            return self.answer(404, "text/plain", "")
        if "id" not in message or not method:
            return self.answer(202, "text/plain", "")
        reply = {"jsonrpc": "2.0", "id": message["id"], **self.outcome(method, message["params"])}
        if "sse" not in self.server.ways:
            return self.answer(200, "application/json", json.dumps(reply))
        ping = {"jsonrpc": "2.0", "id": "ping-1", "method": "ping"}
        events = [f"event: message\r\ndata: {json.dumps(each)}\r\n\r\n" for each in (ping, reply)]
        return self.answer(200, "text/event-stream", ": hello\r\n\r\n" + "".join(events))

    def outcome(self, method: str, params: Any) -> dict[str, Any]:
        if method == "initialize":
            result: dict[str, Any] = {
                "protocolVersion": "2025-03-26",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "Test server", "version": "1"},
            }
        elif method == "tools/list":
            at = int(params.get("cursor", 0))
            result = {"tools": TOOLS[at : at + 2]}
            if at + 2 < len(TOOLS):
                result["nextCursor"] = str(at + 2)
        elif params["name"] == "broken":
            result = {"content": [{"type": "text", "text": "It broke."}], "isError": True}
        elif params["name"] == "slow":
            self.server.going_on.wait(60)
            result = {"content": []}
        elif params["name"] == "calculator":
            return {"error": {"code": -32602, "message": "No beads"}}
        else:
            text = f"Rain in {params['arguments']['city']}"
            text += "!" * 5_000_000 if "huge" in self.server.ways else ""
            content = [{"type": "text", "text": text}, {"type": "image", "mimeType": "image/png"}]
            result = {"content": content}
        return {"result": result}

    def answer(self, status: int, kind: str, body: str) -> None:
        self.send_response(status)
        self.allow()
        self.send_header("Content-Type", kind)
        if self.server.sessions:
            self.send_header("Mcp-Session-Id", self.server.sessions[-1])
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: Any) -> None:
        pass
