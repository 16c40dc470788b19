"""Ways out of a worker, tried by code that should reach nothing, and a server that notices it."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# Ways out of a worker, to each address, and to what a browser keeps for its sites.
WAYS_OUT = """
const heard = (target, event) => new Promise((yes, no) => {
    Object.assign(target, {[event]: yes, onerror: () => no(new Error("refused"))});
});
const inWorker = (code) => new Promise((yes, no) => {
    const said = code + ".then(() => postMessage(true), () => postMessage(false))";
    const worker = new Worker(URL.createObjectURL(new Blob([said])));
    worker.onmessage = ({ data }) => (data ? yes() : no());
});
const request = (url) => {
    const made = new XMLHttpRequest();
    made.open("GET", url);
    made.send();
    return heard(made, "onload");
};
const toAddress = {
    request,
    events: (url) => heard(new EventSource(url), "onopen"),
    socket: (url) => heard(new WebSocket(url.replace("http", "ws")), "onopen"),
    script: (url) => importScripts(url),
    module: (url) => import(url),
    worker: (url) => heard(new Worker(url), "onmessage"),
    fetch: (url) => inWorker(`fetch("${url}")`),
};
const toStorage = {
    chats: () => heard(indexedDB.open("inpage"), "onsuccess"),
    files: () => navigator.storage.getDirectory(),
    caches: () => caches.keys(),
};
const blocked = [];
addEventListener("securitypolicyviolation", ({ blockedURI }) => blocked.push(blockedURI));
self.outcome = (async () => {
    const reached = [];
    const attempt = async (name, way) => {
        try { await way(); reached.push(name); } catch {}
    };
    for (const address of ADDRESSES) {
        for (const [name, way] of Object.entries(toAddress)) {
            await attempt(address + name, () => way(address + name));
        }
    }
    for (const [name, way] of Object.entries(toStorage)) await attempt(name, way);
    new BroadcastChannel("open").postMessage("code of an answer");
    const found = ["port", "wanted", "file", "hear"].filter((name) => name in self);
    try { port; found.push("port"); } catch {}
    return JSON.stringify({ reached, blocked, found, origin: self.origin });
})();
"""
NAMES = ("request", "events", "socket", "script", "module", "worker", "fetch")


class Host(ThreadingHTTPServer):
    """A server that answers anybody, and knows what it was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.asked: set[str] = set()
        self.url = f"http://127.0.0.1:{self.server_port}/"


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        name = self.path.removeprefix("/")
        self.server.asked.add(name)  # type: ignore[attr-defined]
        kind = {"": "text/html", "events": "text/event-stream"}.get(name, "text/javascript")
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()
        self.wfile.write(b"postMessage(1)" if name == "worker" else b"")

    def log_message(self, *_: Any) -> None:
        pass
