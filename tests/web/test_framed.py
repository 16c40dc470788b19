"""Pages, pictures and diagrams of answers, shown in frames that reach nothing."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from playwright.sync_api import Browser, FrameLocator, Route, expect

from tests.web.user import Desk, User, chat_of

pytestmark = pytest.mark.browser

# Ways out of a document: to addresses, to what the browser keeps, and to the page.
HOSTILE = """<!doctype html>
<title>Hostile</title>
<link rel="stylesheet" href="ADDRESSstyle">
<link rel="preload" as="fetch" href="ADDRESSpreload">
<body>
<img src="ADDRESSimage"><iframe src="ADDRESSframe"></iframe>
<form action="ADDRESSform" id="form"></form>
<a href="ADDRESSlink" ping="ADDRESSping">link</a>
<button>Leave</button>
<script>
const reached = [];
const attempt = async (name, way) => {
    try { await way(); reached.push(name); } catch {}
};
const event = (target, name) => new Promise((yes, no) => {
    Object.assign(target, {[name]: yes, onerror: () => no(new Error("refused"))});
});
const candidate = () => new Promise((yes, no) => {
    const peer = new RTCPeerConnection({iceServers: [{urls: "stun:127.0.0.1:PORT"}]});
    peer.createDataChannel("a");
    peer.onicecandidate = ({candidate}) => candidate ? yes() : no(new Error("none"));
    peer.createOffer().then((offer) => peer.setLocalDescription(offer)).catch(no);
});
(async () => {
    for (const address of ["ADDRESS", "OWN"]) {
        await attempt("fetch", () => fetch(address + "fetch", {mode: "no-cors"}));
        await attempt("socket",
            () => event(new WebSocket(address.replace("http", "ws")), "onopen"));
        await attempt("module", () => import(address + "module"));
        await attempt("worker",
            () => event(new Worker(address + "worker"), "onmessage"));
        navigator.sendBeacon(address + "beacon"); // says that it sends, and is refused later
        await attempt("opened", () => { if (!open(address + "opened")) throw 0; });
    }
    await attempt("local", () => localStorage.length);
    await attempt("cookies", () => document.cookie);
    await attempt("database", () => event(indexedDB.open("inpage"), "onsuccess"));
    await attempt("files", () => navigator.storage.getDirectory());
    await attempt("page", () => parent.document.body.remove());
    await attempt("engine", () => parent.inpage.loaded);
    await attempt("top", () => { top.location = "ADDRESStop"; });
    await attempt("port", () => port.postMessage("hello"));
    await attempt("call", candidate);
    parent.postMessage("preview", "*");
    const nested = document.createElement("iframe");
    nested.srcdoc = "<script>fetch('ADDRESSnested').catch(() => {})</" + "script>";
    document.body.append(nested);
    form.submit();
    document.body.append("Reached: " + (reached.join(" ") || "nothing"));
    document.querySelector("button").onclick = () => { location = "ADDRESSaway?secret"; };
})();
</script>
"""
POLICY = "content-security-policy"


@pytest.fixture(scope="module")
def tab(browser: Browser, toy_site_url: str) -> Iterator[User]:
    desk = Desk(browser, toy_site_url)
    user = desk.tab()
    yield user
    assert user.complaints == []
    desk.context.close()


@pytest.fixture
def elsewhere() -> Iterator[tuple[str, list[str]]]:
    """Return an address that answers everybody, and the paths that it was asked for."""
    asked: list[str] = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("access-control-allow-origin", "*")
            self.send_header("cross-origin-resource-policy", "cross-origin")
            self.end_headers()

        do_POST = do_GET

        def log_message(self, format: str, *values: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", asked
        server.shutdown()


def preview(user: User, language: str, text: str) -> FrameLocator:
    """Show the block of an answer, and return the frame."""
    user.import_chats(chat_of("Show me", f"Here:\n\n```{language}\n{text}\n```\n\nDone."))
    expect(user.answers.last).to_contain_text("Done.")
    user.answers.last.get_by_role("button", name="Preview", exact=True).click()
    return user.answers.last.frame_locator(".preview iframe")


def test_a_page_and_a_picture_are_shown_below_their_block(tab: User) -> None:
    script = "document.querySelector('b').textContent = 6 * 7"
    page = f"<style>b {{ color: red }}</style><b>0</b><script>{script}</script>"
    shown = preview(tab, "html", page)
    expect(shown.locator("b")).to_have_text("42")
    assert shown.locator("b").evaluate("b => getComputedStyle(b).color") == "rgb(255, 0, 0)"
    assert tab.faults_of_access() == []
    tab.answers.last.get_by_role("button", name="Close preview").click()
    expect(tab.page.locator(".preview")).to_have_count(0)
    picture = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 2 1"><circle r="1"/></svg>'
    expect(preview(tab, "svg", picture).locator("circle")).to_be_visible()


def test_without_network_a_preview_says_so(tab: User) -> None:
    tab.page.route("**/preview.html", lambda route: route.abort("internetdisconnected"))
    preview(tab, "html", "<b>never</b>")
    told = tab.answers.last.locator(".preview").get_by_role("alert")
    expect(told).to_have_text("The preview did not arrive: check the connection to this site.")
    tab.page.unroute_all()


@pytest.mark.parametrize("leaving", ["Leave", "link"])
@pytest.mark.parametrize("host", ["with headers", "without headers"])
def test_a_hostile_page_reaches_nothing(
    tab: User, toy_site_url: str, elsewhere: tuple[str, list[str]], host: str, leaving: str
) -> None:
    def without_policy(route: Route) -> None:
        answer = route.fetch()
        kept = {name: value for name, value in answer.headers.items() if name != POLICY}
        route.fulfill(response=answer, headers=kept)

    address, asked = elsewhere
    if host == "without headers":  # the policy in the document is all there is
        tab.page.route("**/preview.html", without_policy)
    port = address.split(":")[-1].strip("/")
    text = HOSTILE.replace("ADDRESS", address).replace("OWN", toy_site_url).replace("PORT", port)
    shown = preview(tab, "html", text)
    expect(shown.locator("body")).to_contain_text("Reached: ")
    assert "Reached: nothing" in shown.locator("body").inner_text()
    shown.get_by_text(
        leaving, exact=True
    ).click()  # it gets as far as a page of the browser's that says no
    expect(shown.get_by_text("Reached")).to_have_count(0)
    tab.ask("Are you still there?")  # the page is where it was, and answers
    assert asked == []
    assert len(tab.page.context.pages) == 1
    tab.page.unroute_all()


# ---- diagrams

CHART = "```mermaid\nflowchart LR\n  A[Start] --> B{Really?}\n  B -->|yes| C[Done]\n```\n\nDrawn."
WRONG = "```mermaid\nflowchart LR\n  A[[[ --> ???\n```\n\nNot drawn."
SHARP = """%%{init: {"securityLevel": "loose", "htmlLabels": true}}%%
flowchart LR
  A["<img src=x onerror='parent.postMessage(1)'><b onclick='alert(1)'>a</b>"] --> B
  click B "javascript:alert(1)"
  click A href "https://example.invalid/" "go"
"""


def test_a_diagram_is_drawn_and_its_source_is_a_click_away(tab: User) -> None:
    tab.import_chats(chat_of("Draw", CHART, "And again", WRONG))
    drawn = tab.answers.first.locator("pre")
    picture = drawn.get_by_role("img", name="Diagram")
    expect(picture).to_be_visible()
    source = "img => decodeURIComponent(img.src)"
    assert "Really?" in picture.evaluate(source)
    assert picture.evaluate("img => img.decode().then(() => img.naturalWidth)") > 100
    drawn.get_by_role("button", name="Source").click()
    expect(drawn.locator("code")).to_be_visible()
    expect(picture).to_be_hidden()
    drawn.get_by_role("button", name="Diagram").click()
    expect(picture).to_be_visible()
    expect(tab.answers.last.locator("pre")).to_have_attribute("data-fault", "cannot be drawn")
    expect(tab.answers.last.locator("pre code")).to_be_visible()
    assert tab.faults_of_access() == []


def test_a_hostile_diagram_is_a_picture_without_scripts(tab: User) -> None:
    tab.import_chats(chat_of("Draw", f"```mermaid\n{SHARP}```\n\nSharp."))
    picture = tab.answers.last.get_by_role("img", name="Diagram")
    expect(picture).to_be_visible()
    drawn = picture.evaluate("img => decodeURIComponent(img.src)")
    for word in ("onerror", "onclick", "javascript:", "<script"):
        assert word not in drawn


def test_a_diagram_that_takes_too_long_stays_its_source(tab: User) -> None:
    tab.page.evaluate("""async () => {
        const {patience} = await import("/ui/markdown/framed.js");
        globalThis.patient = {...patience};
        Object.assign(patience, {diagram: 0});
    }""")
    slow = (
        "```mermaid\ngraph TD\n"
        + "".join(f"  a{n} --> b{n % 7}\n" for n in range(300))
        + "```\n\nSlow."
    )
    tab.import_chats(chat_of("Draw", slow))
    expect(tab.answers.last.locator("pre")).to_have_attribute("data-fault", "cannot be drawn")
    tab.page.evaluate("""async () => {
        Object.assign((await import("/ui/markdown/framed.js")).patience, patient);
    }""")
    tab.import_chats(chat_of("Draw", CHART.replace("Start", "Begin")))
    expect(tab.answers.last.get_by_role("img", name="Diagram")).to_be_visible()  # a new frame


# ---- a script without end: last, for the process of such frames may be busy for a while


def test_a_page_without_end_can_be_closed(desk: Desk) -> None:
    tab = desk.tab()
    preview(tab, "html", "<p>Busy</p><script>parent.postMessage(1, '*'); for (;;);</script>")
    answer = tab.answers.last
    answer.get_by_role("button", name="Close preview").click()
    expect(tab.page.locator(".preview")).to_have_count(0)
    tab.ask("Are you still there?")
