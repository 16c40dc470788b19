"""Code of answers, run below the answer: apart from the chats, the engine and the network."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.web.user import User, chat_of, until

pytestmark = pytest.mark.browser

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
IN_BLOCK = """
import js, sys
from pyodide.ffi import to_js
code = js.Blob.new(to_js([%r]))
js.importScripts(js.URL.createObjectURL(code))
outcome = await js.outcome
print("engine", "py_runtime.app.in_page" in sys.modules, "inpage_bridge" in sys.modules)
print(outcome)
"""
IN_PLAIN_WORKER = """code => new Promise(yes => {
    const all = [code, "outcome.then(postMessage)"];
    const worker = new Worker(URL.createObjectURL(new Blob(all)));
    worker.onmessage = ({data}) => yes(JSON.parse(data));
})"""


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


@pytest.fixture
def host() -> Iterator[Host]:
    with Host() as host:
        Thread(target=host.serve_forever, daemon=True).start()
        yield host
        host.shutdown()


def block_of(user: User, code: str) -> Locator:
    """Import a chat whose answer has this code, and return the answer."""
    user.import_chats(chat_of("Write code", f"Here:\n\n```python\n{code}\n```"))
    return user.answers.last


def run(answer: Locator) -> Locator:
    answer.get_by_role("button", name="Run ▸").click()
    return answer.get_by_role("log")


def test_a_block_runs_below_itself_and_its_result_goes_to_the_model(user: User) -> None:
    answer = block_of(user, "print('seen')\nplot.bars({'a': 1}, title='Drawn')")
    output = run(answer)
    expect(output.get_by_role("img", name="Drawn")).to_be_visible()
    expect(output).to_contain_text("seen")
    answer.get_by_role("button", name="Send the result to the model").click()
    expect(user.questions.last).to_contain_text("I ran the code. The result:")
    expect(user.questions.last).to_contain_text("seen")
    user.answered()
    answer = block_of(user, "1 / 0")
    expect(run(answer)).to_contain_text("ZeroDivisionError")


def test_it_reaches_nothing(user: User, host: Host) -> None:
    """The same ways all lead out of a page that forbids nothing."""
    plain = user.page.context.new_page()
    plain.goto(host.url)
    open_ways = WAYS_OUT.replace("ADDRESSES", json.dumps([host.url]))
    reached = plain.evaluate(IN_PLAIN_WORKER, open_ways)["reached"]
    plain.close()
    assert host.asked >= set(NAMES)
    assert {"chats", "files", "caches", f"{host.url}request", f"{host.url}fetch"} <= set(reached)

    host.asked.clear()
    user.page.evaluate("""() => {
        globalThis.heard = [];
        new BroadcastChannel("open").onmessage = ({data}) => heard.push(data);
    }""")
    ways = WAYS_OUT.replace("ADDRESSES", json.dumps([host.url, user.url]))
    output = run(block_of(user, IN_BLOCK % ways))
    expect(output).to_contain_text("origin")
    engine, outcome = output.inner_text().strip().splitlines()
    assert engine == "engine False False"
    found = json.loads(outcome)
    assert (found["reached"], found["found"], found["origin"]) == ([], [], "null")
    assert host.asked == set()
    for address in (host.url, user.url):  # the policy did it, not the server's answer
        for name in NAMES[:3]:
            assert f"{address}{name}" in [url.replace("ws:", "http:") for url in found["blocked"]]
    user.page.evaluate("new BroadcastChannel('open').postMessage('the page')")
    until(user.page, lambda: user.page.evaluate("heard.length"), "the page hears itself")
    assert user.page.evaluate("heard") == ["the page"]


def test_a_loop_is_stopped_and_ends_by_itself_after_a_while(user: User) -> None:
    answer = block_of(user, "print('begins')\nwhile True: pass")
    expect(run(answer)).to_contain_text("begins")
    answer.get_by_role("button", name="Stop", exact=True).click()
    expect(answer.get_by_role("status")).to_have_text("Stopped.")
    user.page.evaluate("""import("/ui/notebook/run_block.js").then(({patience}) => {
        patience.code = 100;
    })""")
    expect(run(answer)).to_contain_text("begins")
    expect(answer.get_by_role("status")).to_have_text("Stopped.")


def test_only_python_has_the_button(user: User) -> None:
    user.import_chats(chat_of("Write code", "```js\n1\n```\n\n```\n2\n```"))
    expect(user.answers.last.get_by_role("button", name="Copy", exact=True).first).to_be_visible()
    expect(user.answers.last.get_by_role("button", name="Run ▸")).to_have_count(0)
