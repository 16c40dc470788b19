"""Tabs that share an engine come and go: none is there that has left, and none gets a dying one.

The engine itself is left out; tests/reach/test_shared_engine.py has it.
"""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from playwright.sync_api import Error as PlaywrightError

from tests.conftest import serving_folder
from tools.files import ROOT

pytestmark = pytest.mark.browser

PAGE = """<!doctype html>
<title>A tab</title>
<script type="module">
  import { sharedWorker } from "./shared_tab.js";
  globalThis.enter = (name) => {
    const worker = sharedWorker("shared_worker.js", name);
    worker.postMessage({ outerPage: "{}" });
    return worker;
  };
  globalThis.engineOf = (worker) => new Promise((resolve) => {
    worker.addEventListener("message", ({ data }) => { if (data.engine) resolve(data.engine); });
  });
  globalThis.failureOf = (worker) => new Promise((resolve) => {
    worker.addEventListener("message", ({ data }) => { if (data.failure) resolve(data.failure); });
  });
  globalThis.closing = new Promise((resolve) => {
    new BroadcastChannel("closing").onmessage = resolve;
  });
</script>
"""
# In the engine's place: says which one it is, that it lives, and when it begins to end, which takes
# a while.
WORKER = """
postMessage({ engine: Math.random() });
navigator.locks.request(self.name, () => new Promise(() => {}));
postMessage({ event: "alive" });
const end = self.close.bind(self);
self.close = () => {
  new BroadcastChannel("closing").postMessage("");
  setTimeout(end, 1000);
};
"""
IS_THERE = """async () => (await navigator.locks.query()).held
  .some(({ name }) => name.startsWith("inpage tab"))"""
LOOKS = 100


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder: Path = tmp_path_factory.mktemp("shared")
    (folder / "index.html").write_text(PAGE)
    (folder / "worker.js").write_text(WORKER)
    for name in ("shared_tab.js", "shared_worker.js"):
        shutil.copy(ROOT / "web" / name, folder)
    with serving_folder(folder) as address:
        context = browser.new_context()
        page = context.new_page()
        page.goto(address)
        page.wait_for_function("() => globalThis.enter")
        yield page
        context.close()


def test_a_tab_that_leaves_at_once_is_not_there(page: Page) -> None:
    page.evaluate("""() => {
      enter("one who leaves").terminate();
      return navigator.locks.request("who asked before has theirs by now", () => {});
    }""")
    for _ in range(LOOKS):
        if not page.evaluate(IS_THERE):
            return
        page.wait_for_timeout(20)
    pytest.fail("it still holds its lock")


def test_who_comes_while_the_engine_closes_gets_the_next_one(page: Page) -> None:
    first, second = page.evaluate("""async () => {
      const tab = enter("one who comes");
      const first = await engineOf(tab);
      tab.terminate();
      await closing;
      return [first, await engineOf(enter("one who comes"))];
    }""")
    assert second != first


def test_whoever_shares_an_engine_hears_when_it_dies_with_another_tab(page: Page) -> None:
    """The browser runs the engine in the process of the tab that asked first."""
    other = page.context.new_page()
    other.goto(page.url)
    other.wait_for_function("() => globalThis.enter")
    first = other.evaluate("engineOf(enter('one that dies'))")
    second = page.evaluate("""async () => {
      const worker = enter("one that dies");
      globalThis.failure = failureOf(worker);
      return engineOf(worker);
    }""")
    assert second == first
    with suppress(PlaywrightError):  # nobody is left to answer
        other.goto("chrome://crash")
    told = page.evaluate("failure")
    assert told == {"kind": "crashed", "message": "the engine that the tabs share has ended"}
    assert page.evaluate("engineOf(enter('one that dies'))") not in (None, first)
    other.close()
