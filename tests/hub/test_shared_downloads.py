"""Tabs that want the same model of the Hub: one downloads it, the others take it from storage."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.conftest import serving
from tests.gguf import small
from tests.hub.imitation import HELD, Imitation
from tests.web.user import User, keep_from_loading_stored, until

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

ALLOWED = "localStorage.setItem('inpageHub', JSON.stringify({ allowed: true }))"
BEGIN = """(where) => {
  Object.assign(globalThis, { stop: new AbortController(), followed: 0 });
  const onProgress = ({ phase, done }) => { globalThis.followed = phase === "download" && done; };
  const load = inpage.load(where, { signal: stop.signal, onProgress });
  globalThis.loaded = load.then(({ name }) => name, ({ code }) => code);
}"""
WAITING = """navigator.locks.query().then(
  ({ pending }) => pending.filter(({ name }) => name.startsWith("inpage begun-")).length
)"""


@pytest.fixture(scope="module")
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context()
    context.add_init_script(ALLOWED)
    yield context
    context.close()


@pytest.fixture(scope="module")
def open_tab(context: BrowserContext, hub: Imitation, tmp_path_factory: Any) -> Iterator[Any]:
    """Open tabs of a site without models of its own.

    A stored one is loaded where a test says so.
    """
    models = str(tmp_path_factory.mktemp("none"))
    keep_from_loading_stored(context)
    with serving("--models", models, "--hub", hub.hub, hub.cdn) as address:

        def opened() -> User:
            user = User(context.new_page(), address)
            user.page.goto(address)
            user.page.evaluate("inpage.ready.then(() => null)")
            user.has_opened()
            return user

        yield opened


@pytest.fixture(scope="module")
def tab(open_tab: Callable[[], User]) -> User:
    """Open a tab that stays."""
    return open_tab()


@pytest.fixture(scope="module")
def other(open_tab: Callable[[], User]) -> User:
    """Another one."""
    return open_tab()


@pytest.fixture
def model(hub: Imitation, request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the name of a model that nobody has yet, whose second half is held back."""
    name = re.sub(r"\W+", "-", request.node.name).strip("-")
    data = small.small_file(**{"general.name": name})
    hub.put(f"toys/{name}", **{f"{name}__gguf": data})
    hub.faults = {f"{name}.gguf": HELD}
    hub.go_on.clear()
    hub.take_seen()
    yield name
    let_go(hub)


def let_go(hub: Imitation) -> None:
    hub.faults = {}
    hub.go_on.set()


def begin(hub: Imitation, user: User, name: str) -> None:
    """Begin a download, until its bytes arrive."""
    user.page.evaluate(BEGIN, f"hf:toys/{name}")
    until(user.page, lambda: downloads(hub), "bytes are asked for")


def downloads(hub: Imitation) -> list[str | None]:
    """Return the ranges that were asked for; those with an end are of the header."""
    ranges = [seen.headers.get("range") for seen in hub.seen if seen.host == "cdn"]
    return [wanted for wanted in ranges if wanted is None or wanted.endswith("-")]


def waits(user: User) -> None:
    user.page.wait_for_function(f"() => {WAITING}.then((count) => count > 0)")


def follows(user: User, name: str) -> None:
    """Wait for another tab, of whose bytes it knows some."""
    user.page.evaluate(BEGIN, f"hf:toys/{name}")
    waits(user)
    user.page.wait_for_function("() => followed > 0")


def test_one_tab_downloads_and_both_load(
    hub: Imitation, tab: User, other: User, model: str
) -> None:
    begin(hub, other, model)
    tab.come_to_front()
    tab.page.locator("#loader [data-opens=models]").click()
    panel = tab.page.get_by_role("dialog", name="Models")
    panel.get_by_label("Search the Hugging Face Hub").fill(f"toys/{model}")
    panel.get_by_role("button", name="Search").click()
    panel.get_by_role("button", name=re.compile(r"^Use \(.* download\)")).click()
    waits(tab)
    size = len(hub.repositories[f"toys/{model}"].files[f"{model}.gguf"])
    half = re.compile(rf"1[2-9]\.\d kB of {size / 1000:.1f} kB")
    expect(tab.page.locator("#step-download")).to_contain_text(half)
    let_go(hub)
    assert other.page.evaluate("loaded") == model
    expect(tab.page.locator("#modelName")).to_have_text(model)
    expect(tab.page.locator("body")).to_have_attribute("data-model", "ready")
    assert downloads(hub) == [None]
    assert hub.sent[f"{model}.gguf"] == size, "each byte once"
    assert tab.complaints == other.complaints == []


def test_who_stops_waiting_leaves_the_other_alone(
    hub: Imitation, tab: User, other: User, model: str
) -> None:
    begin(hub, other, model)
    follows(tab, model)
    tab.page.evaluate("stop.abort()")
    assert tab.page.evaluate("loaded") == "aborted"
    let_go(hub)
    assert other.page.evaluate("loaded") == model
    assert downloads(hub) == [None]


@pytest.mark.parametrize("leaves", ["paused", "closed"])  # in this order: the second is for good
def test_another_tab_goes_on_where_the_one_that_downloads_is(
    hub: Imitation, tab: User, other: User, model: str, leaves: str
) -> None:
    begin(hub, other, model)
    follows(tab, model)
    if leaves == "paused":
        other.page.evaluate("stop.abort()")
        assert other.page.evaluate("loaded") == "aborted"
    else:
        other.page.close()
    let_go(hub)
    assert tab.page.evaluate("loaded") == model
    whole, rest = downloads(hub)
    assert whole is None
    assert rest is not None
    size = len(hub.repositories[f"toys/{model}"].files[f"{model}.gguf"])
    assert 0 < int(rest.removeprefix("bytes=").removesuffix("-")) < size
