"""Tabs that want the same model: one downloads a file, the others take it from storage."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.folder.conftest import LoadingPage
from tests.folder.faulty_site import WAIT
from tests.runners import PageRunner
from tests.web.user import until

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

BEGIN = """(url) => {
  globalThis.stop = new AbortController();
  const { signal } = globalThis.stop;
  const load = inpage.load(url, { signal });
  globalThis.loaded = load.then(() => inpage.loaded.name, ({ code }) => code);
}"""
WAITING = """navigator.locks.query().then(
  ({ pending }) => pending.filter(({ name }) => name.startsWith("inpage begun-")).length
)"""


@pytest.fixture(scope="module")
def others() -> Iterator[list[PageRunner]]:
    """Keep the other pages; the last one is in use."""
    others: list[PageRunner] = []
    yield others
    for other in others:
        other.page.close()


@pytest.fixture
def other(page: LoadingPage, others: list[PageRunner]) -> PageRunner:
    """Another tab; that of the test before, unless it was closed."""
    if not others or others[-1].page.is_closed():
        others.append(page.open_tab())
    return others[-1]


@pytest.fixture
def shard(page: LoadingPage, manifest: dict[str, Any]) -> str:
    """Make a file stop half-way while the site has faults."""
    first = next(file for file in manifest["files"] if file.endswith(".safetensors"))
    page.site.faults[f"Toy/{first}"] = WAIT
    return f"Toy/{first}"


def begin_both(first: PageRunner, second: PageRunner, page: LoadingPage, shard: str) -> None:
    """Begin both downloads, until the second waits for what the first is downloading."""
    page.site.whole.clear()
    first.page.evaluate(BEGIN, page.address())
    until(first.page, lambda: shard in page.site.whole, "the shard is asked for")
    second.page.evaluate(BEGIN, page.address())
    second.page.wait_for_function(f"() => {WAITING}.then((count) => count > 0)")


def test_one_tab_downloads_and_both_load(page: LoadingPage, other: PageRunner, shard: str) -> None:
    tabs = page.runner, other
    begin_both(*tabs, page, shard)
    page.site.faults.clear()
    assert [tab.page.evaluate("loaded") for tab in tabs] == ["Toy", "Toy"]
    assert page.site.whole.count(shard) == 1


def test_who_stops_waiting_leaves_the_rest_to_the_other(
    page: LoadingPage, other: PageRunner, shard: str
) -> None:
    begin_both(other, page.runner, page, shard)
    page.runner.page.evaluate("stop.abort()")
    assert page.runner.page.evaluate("loaded") == "aborted"
    page.site.faults.clear()
    assert other.page.evaluate("loaded") == "Toy"
    other.page.wait_for_function(f"() => {WAITING}.then((count) => count === 0)")


def test_where_the_tab_that_downloads_is_closed_another_goes_on(
    page: LoadingPage, other: PageRunner, shard: str
) -> None:
    begin_both(other, page.runner, page, shard)
    other.page.close()
    page.site.faults.clear()
    assert page.runner.page.evaluate("loaded") == "Toy"
