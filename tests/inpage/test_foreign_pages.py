"""Pages of other origins, in a real browser: what they can have of serve.py and `inpage api`."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from inpage import http_api
from py_runtime.app.completions import Completion
from serve import create_app
from tests.background import answering
from tests.fuzz.request_targets import unloaded
from tests.tools.small_site import make_site, serving_app
from tools.compress import VariantStore

pytestmark = pytest.mark.browser

REQUEST = json.dumps({"messages": [{"role": "user", "content": "the fox"}]})
# Each gives what the page could read or run, and nothing where it was refused.
TRY = """async ([address, body]) => {
  const reading = (options) => () => fetch(address, options).then((answer) => answer.text());
  const element = (name, attribute) => () => new Promise((resolve) => {
    const made = Object.assign(document.createElement(name), { onload: () => resolve("loaded") });
    made.onerror = () => resolve("");
    made.rel = "stylesheet"; // of a link
    made[attribute] = address;
    document.body.append(made);
  });
  const typed = (type) => new Blob([body], { type });
  const posting = (type, mode) => reading({ method: "POST", mode, body: typed(type) });
  const json = { "Content-Type": "application/json" };
  const ways = {
    get: reading({}),
    opaque: reading({ mode: "no-cors" }),
    withCookies: reading({ credentials: "include" }),
    head: reading({ method: "HEAD" }),
    text: posting("text/plain", "cors"),
    opaqueText: posting("text/plain", "no-cors"),
    opaqueForm: posting("application/x-www-form-urlencoded", "no-cors"),
    opaqueNothing: posting("", "no-cors"),
    opaqueJson: reading({ method: "POST", mode: "no-cors", headers: json, body }),
    preflighted: reading({ method: "POST", headers: json, body }),
    simpleType: posting("text/plain; application/json", "no-cors"),
    put: reading({ method: "PUT", body }),
    script: element("script", "src"),
    image: element("img", "src"),
    style: element("link", "href"),
    beacon: async () => {
      navigator.sendBeacon(address, typed("text/plain"));
      navigator.sendBeacon(address, typed("application/json"));
      return "";
    },
    socket: () => new Promise((resolve) => {
      const socket = new WebSocket(address.replace("http", "ws"));
      socket.onopen = () => resolve("open");
      socket.onerror = () => resolve("");
    }),
    events: () => new Promise((resolve) => {
      const source = new EventSource(address);
      source.onopen = () => resolve("open");
      source.onerror = () => { source.close(); resolve(""); };
    }),
    form: async () => {
      const form = document.createElement("form");
      const field = document.createElement("input");
      const frame = document.createElement("iframe");
      [frame.name, form.target, form.action, form.method] = ["framed", "framed", address, "post"];
      form.enctype = "text/plain";
      [field.name, field.value] = [body.slice(0, -1) + ',"user":"', '"}'];
      form.append(field);
      document.body.append(frame, form);
      form.submit();
      await new Promise((resolve) => { frame.onload = resolve; });
      try { return frame.contentDocument?.body.textContent ?? ""; } catch { return ""; }
    },
    frame: () => new Promise((resolve) => {
      const frame = document.createElement("iframe");
      frame.src = address;
      frame.onload = () => {
        try { resolve(frame.contentDocument?.body.textContent ?? ""); } catch { resolve(""); }
      };
      document.body.append(frame);
    }),
  };
  const late = () => new Promise((resolve) => { setTimeout(resolve, 2000, ""); });
  const tried = Object.entries(ways).map(async ([name, way]) => [
    name, await Promise.race([way().catch(() => ""), late()]),
  ]);
  return Object.fromEntries(await Promise.all(tried));
}"""


class Foreign(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        page = b"<!doctype html><title>elsewhere</title><body>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *details: Any) -> None:
        pass


@pytest.fixture(scope="module")
def foreign(browser: Browser) -> Iterator[Page]:
    """Open a page of this machine, but of another origin."""
    with answering(HTTPServer(("127.0.0.1", 0), Foreign)) as address:
        page = browser.new_page()
        page.goto(address)
        yield page
        page.close()


@pytest.fixture(scope="module")
def api() -> Iterator[tuple[int, list[Any]]]:
    """Return the port of `inpage api`, and the requests that it has taken."""
    taken: list[Any] = []

    class Taken(Completion):
        def __init__(self, *given: Any) -> None:
            taken.append(given[1])
            super().__init__(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_api, "Completion", Taken)
        with serving_app(http_api.create_api(unloaded())) as port:
            yield port, taken


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/v1/models"])
def test_a_foreign_page_has_nothing_of_the_api(
    foreign: Page, api: tuple[int, list[Any]], path: str
) -> None:
    port, taken = api
    found = foreign.evaluate(TRY, [f"http://localhost:{port}{path}", REQUEST])
    assert len(found) > 15
    assert set(found.values()) == {""}, found
    assert taken == [], "nothing was run"


def test_a_name_that_is_pointed_at_this_machine(
    browser: Browser, api: tuple[int, list[Any]]
) -> None:
    """Browsers take every name below localhost to this machine: as if its owner had moved it."""
    port, taken = api
    page = browser.new_page()
    page.goto(f"http://evil.localhost:{port}/v1/models")
    assert "This server is localhost" in page.inner_text("body")
    status = page.evaluate(
        """body => fetch("/v1/chat/completions", {
            method: "POST", headers: { "Content-Type": "application/json" }, body,
        }).then(({ status }) => status, () => 0)""",
        REQUEST,
    )
    assert status in (0, 421)
    assert taken == []
    page.close()


def test_a_program_is_answered(api: tuple[int, list[Any]]) -> None:
    """Else the above would prove nothing."""
    port, taken = api
    request = urllib.request.Request(
        f"http://localhost:{port}/v1/completions",
        json.dumps({"prompt": "a", "temperature": 9}).encode(),
        {"Content-Type": "application/json"},
    )
    with pytest.raises(urllib.error.HTTPError, match="400"):
        urllib.request.urlopen(request)
    assert len(taken) == 1


@pytest.fixture(scope="module")
def site_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    root = tmp_path_factory.mktemp("foreign")
    with serving_app(create_app(make_site(root), VariantStore(root / "cache"))) as port:
        yield port


@pytest.mark.parametrize(
    "path", ["/", "/app.js", "/models.json", "/models/tiny/weights.safetensors"]
)
def test_a_foreign_page_has_nothing_of_the_site(foreign: Page, site_port: int, path: str) -> None:
    found = foreign.evaluate(TRY, [f"http://localhost:{site_port}{path}", REQUEST])
    assert set(found.values()) == {""}, found


def test_a_foreign_page_cannot_hold_a_window_of_the_site(foreign: Page, site_port: int) -> None:
    address = f"http://localhost:{site_port}/"
    with foreign.expect_popup() as opened:
        foreign.evaluate("address => { globalThis.opened = window.open(address); }", address)
    foreign.wait_for_function("opened.closed")  # to its opener: it is in a group of its own
    opened.value.close()
