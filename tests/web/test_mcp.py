"""Tools of MCP servers: listed, asked for and called; where a server fails, the page says how."""

from collections.abc import Iterator
from threading import Thread

import pytest
from playwright.sync_api import Route, expect

from tests.web.mcp_server import TOKEN, McpHost
from tests.web.test_tools import allow_all, caller, calls, decide, plan, results, send
from tests.web.user import Desk, User, until

pytestmark = pytest.mark.browser


@pytest.fixture
def server() -> Iterator[McpHost]:
    with McpHost() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.going_on.set()
        server.shutdown()


@pytest.fixture
def user(desk: Desk) -> User:
    return caller(desk.tab())


def add(user: User, url: str, token: str = "") -> None:
    user.page.locator("#openTools").click()
    user.page.get_by_label("Address of a server").fill(url)
    user.page.get_by_label("Access token, if the server wants one").fill(token)
    user.page.get_by_role("button", name="Add server").click()


def fault(user: User, url: str, token: str = "") -> str:
    """Return what the dialog says about a server that cannot be added."""
    add(user, url, token)
    error = user.page.locator("#serverError")
    expect(error).not_to_be_empty()
    user.page.keyboard.press("Escape")
    return error.inner_text()


@pytest.mark.parametrize("way", ["json", "sse"])
def test_tools_of_a_server_are_listed_and_called(user: User, server: McpHost, way: str) -> None:
    server.ways = {way, "token"}
    assert "wants an access token (401)" in fault(user, server.url)
    assert server.methods() == ["initialize"]
    add(user, server.url, TOKEN)
    row = user.page.locator(".server")
    expect(row.locator("summary")).to_have_text("Test server 4 tools")
    assert user.faults_of_access() == []
    row.locator("summary").click()
    row.get_by_label("broken").uncheck()
    user.page.keyboard.press("Escape")
    plan(user, calls(("weather_report", {"city": "Kyoto"})))
    block = send(user)
    expect(block).to_contain_text("Let the model use weather report of Test server?")
    assert "tools/call" not in server.methods()
    decide(user, "Allow once")
    user.answered()
    expect(block.locator("summary")).to_have_text("Used weather report of Test server")
    assert results(user)[0].startswith("Rain in Kyoto\n(image image/png")
    offered = user.page.evaluate("inpage.requests[0].tools.map(tool => tool.function.name)")
    assert offered[-3:] == ["weather_report", "calculator_2", "slow"]
    *_, (method, headers, message) = server.heard
    if way == "sse":  # it was answered, perhaps after its reply
        until(user.page, lambda: "" in server.methods(), "the ping is answered")
        (method, headers, message) = next(e for e in server.heard if e[0] == "tools/call")
    assert (method, message["params"]["arguments"]) == ("tools/call", {"city": "Kyoto"})
    assert headers["authorization"] == f"Bearer {TOKEN}"
    assert headers["mcp-session-id"] == server.sessions[-1]
    assert headers["mcp-protocol-version"] == "2025-03-26"
    assert headers["origin"] == user.url.rstrip("/")

    allow_all(user, *[f"{server.url} {name}" for name in ("weather report", "calculator", "slow")])
    server.sessions.append("another")  # the old one is forgotten
    plan(user, calls(("weather_report", {"city": "Oslo"}), ("calculator_2", {})))
    send(user)
    user.answered()
    assert results(user)[1].startswith("Rain in Oslo")
    assert results(user)[2] == "Error: Test server answered with an error: No beads"
    assert TOKEN not in user.page.evaluate("JSON.stringify({...localStorage, ...sessionStorage})")


def test_a_slow_call_is_stopped_and_a_huge_result_refused(user: User, server: McpHost) -> None:
    add(user, server.url)
    expect(user.page.locator(".server summary")).to_contain_text("4 tools")
    user.page.keyboard.press("Escape")
    names = ("slow", "weather report", "broken")
    allow_all(user, *[f"{server.url} {name}" for name in names])
    plan(user, calls(("slow", {})))
    block = send(user)
    until(user.page, lambda: "tools/call" in server.methods(), "the call arrives")
    user.stop.click()
    user.answered()
    expect(block.locator("summary")).to_have_text("slow of Test server was stopped")
    until(user.page, lambda: "notifications/cancelled" in server.methods(), "it is told")
    server.ways = {"huge"}
    plan(user, calls(("weather_report", {"city": "Kyoto"}), ("broken", {})))
    send(user)
    user.answered()
    assert results(user)[-2:] == ["Error: Test server sent more than 4 MB.", "Error: It broke."]
    user.page.evaluate("""import("/ui/tools/mcp.js").then(({patience}) => {
        patience.call = 100;
    })""")
    plan(user, calls(("slow", {})))
    send(user)
    user.answered()
    assert results(user)[-1].endswith("in time.")


def test_faults_are_explained(user: User, server: McpHost) -> None:
    server.ways = {"closed"}
    own = user.url.rstrip("/")
    words = fault(user, server.url)
    assert "(CORS)" in words
    assert f"Access-Control-Allow-Origin: {own}" in words
    assert server.heard == [], "the browser has asked first"
    assert "nothing runs at this address" in fault(user, "http://127.0.0.1:9/mcp")
    server.ways = {"plain"}
    assert "is no MCP server over streamable HTTP: it answered with text/html" in fault(
        user, server.url
    )
    server.ways = {"token"}
    assert fault(user, server.url, "wrong").endswith("does not accept this token (401).")
    server.ways = {"hidden"}
    assert "Access-Control-Expose-Headers: Mcp-Session-Id" in fault(user, server.url)
    expect(user.page.locator(".server")).to_have_count(0)


def test_a_policy_that_forbids_servers_is_named(desk: Desk, server: McpHost) -> None:
    strict = {"Content-Security-Policy": "connect-src 'self'"}

    def answer(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, headers={**response.headers, **strict})

    user = caller(desk.tab())
    user.page.route("**/connector.html", answer)
    assert "policy does not let its pages connect to" in fault(user, server.url)
    assert server.heard == []


def test_a_server_is_kept_until_it_is_removed(desk: Desk, server: McpHost) -> None:
    user = caller(desk.tab())
    add(user, server.url)
    row = user.page.locator(".server")
    expect(row).to_contain_text("4 tools")
    user.page.reload()
    desk.ready(user)
    user.page.locator("#openTools").click()
    expect(row).to_contain_text("4 tools")
    server.ways = {"plain"}
    row.get_by_role("button", name="Refresh").click()
    expect(row.locator(".fault")).to_contain_text("is no MCP server")
    row.get_by_role("button", name="Remove").click()
    expect(row).to_have_count(0)
    user.page.reload()
    desk.ready(user)
    user.page.locator("#openTools").click()
    expect(user.page.get_by_label("Address of a server")).to_be_visible()
    expect(row).to_have_count(0)
