"""Each way in which the page cannot start or dies gives an explanation, never a blank."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserType, Page, Route, expect

from tools import browser as browser_tools
from tools.files import ROOT

pytestmark = pytest.mark.browser


def expect_explanation(page: Page, title: str, *words: str) -> None:
    panel = page.locator("#failure")
    expect(panel).to_have_attribute("role", "alert")
    expect(panel.get_by_role("heading", name=title)).to_be_visible()
    for word in words:
        expect(panel).to_contain_text(word)
    expect(panel.get_by_role("button", name="Reload")).to_be_visible()
    expect(page.locator("#status")).to_have_text("Stopped.")
    assert panel.locator("li").count() >= 1, "an explanation says what to do"


def begin_worker_with(page: Page, script: str) -> None:
    """Run a script in the worker, before its own."""
    body = f"{script}\n{(ROOT / 'web' / 'worker.js').read_text()}"
    headers = {"Cross-Origin-Embedder-Policy": "require-corp"}

    def fulfil(route: Route) -> None:
        route.fulfill(body=body, content_type="text/javascript", headers=headers)

    page.route("**/worker.js", fulfil)


def rejection(page: Page) -> str:
    kind: str = page.evaluate("inpage.ready.then(() => 'started', error => error.code)")
    return kind


def test_no_webgpu(browser: Browser, site_url: str) -> None:
    """The site asks for the GPU; tests/web/test_processor.py has pages that may choose."""
    page = browser.new_page()
    begin_worker_with(page, "delete WorkerNavigator.prototype.gpu;")
    page.goto(site_url)
    expect_explanation(page, "This browser has no WebGPU", "https://", "navigator.gpu is missing")
    assert rejection(page) == "no-webgpu"
    page.close()


def test_no_adapter(browser_type: BrowserType, site_url: str) -> None:
    """A browser of its own, started without the flags that give it a software adapter."""
    flags = list(browser_tools.QUIET_FLAGS)
    executable = str(browser_tools.find())
    browser = browser_type.launch(executable_path=executable, args=[*flags, "--disable-gpu"])
    page = browser.new_page()
    page.goto(site_url)
    expect_explanation(page, "No graphics processor is available", "driver", "found no GPU")
    assert rejection(page) == "no-adapter"
    browser.close()


SNAPSHOT = "**/snapshots/**"  # without it, Python starts from these files
THOROUGH = ("pyodide.asm.wasm", "pyodide.mjs", "inpage-*.whl")
SITE_FILES = ["site.json", *(pytest.param(file, marks=pytest.mark.thorough) for file in THOROUGH)]


@pytest.mark.parametrize("file", SITE_FILES)
def test_python_does_not_load(browser: Browser, site_url: str, file: str) -> None:
    page = browser.new_page()
    page.route(SNAPSHOT, lambda route: route.abort())
    page.route(f"**/{file}", lambda route: route.abort())
    page.goto(site_url)
    expect_explanation(page, "Python could not be loaded", "make setup")
    assert rejection(page) == "start-failed"
    page.close()


def test_a_file_that_is_missing_on_the_server(browser: Browser, site_url: str) -> None:
    page = browser.new_page()
    page.route(SNAPSHOT, lambda route: route.fulfill(status=404))
    page.route("**/pyodide-lock.json", lambda route: route.fulfill(status=404, body="not here"))
    page.goto(site_url)
    expect_explanation(page, "Python could not be loaded", "answered 404")
    page.close()


# It compiles, but asks for a function that nobody has: a version beside scripts of another one.
OTHER_WASM = b"\0asm\1\0\0\0" + b"\1\4\1\x60\0\0" + b"\2\x0f\1\5other\5thing\0\0"


@pytest.mark.parametrize("body", [b"no wasm at all", OTHER_WASM], ids=["broken", "other"])
def test_a_file_that_arrives_broken(browser: Browser, site_url: str, body: bytes) -> None:
    page = browser.new_page()
    page.route(
        "**/pyodide.asm.wasm",
        lambda route: route.fulfill(content_type="application/wasm", body=body),
    )
    page.goto(site_url)
    expect_explanation(page, "Python could not be loaded", "WebAssembly")
    page.close()


def test_the_workers_script_does_not_load(browser: Browser, site_url: str) -> None:
    page = browser.new_page()
    page.route("**/worker.js", lambda route: route.abort())
    page.goto(site_url)
    expect_explanation(page, "The engine stopped", "Reload the page")
    assert rejection(page) == "crashed"
    page.close()


def test_the_worker_throws_while_starting(browser: Browser, site_url: str) -> None:
    def break_script(route: Route) -> None:
        route.fulfill(
            status=200,
            content_type="text/javascript",
            headers={"Cross-Origin-Embedder-Policy": "require-corp"},
            body="throw new Error('broken on purpose')",
        )

    page = browser.new_page()
    page.route("**/worker.js", break_script)
    page.goto(site_url)
    expect_explanation(page, "The engine stopped", "broken on purpose")
    page.close()


@pytest.fixture(scope="module")
def started(browser: Browser, site_url: str) -> Iterator[Page]:
    """Open a page whose Python has started."""
    page = browser.new_page()
    page.goto(site_url)
    assert rejection(page) == "started"
    yield page
    page.close()


# In this order: the second one ends the page's Python.


def test_a_stray_error_in_the_worker_is_no_crash(started: Page) -> None:
    stray = (
        "import js\nfrom pyodide.ffi import create_once_callable\n"
        "def fail(): raise ValueError('stray')\n"
        "_ = js.setTimeout(create_once_callable(fail), 0)\nNone"
    )
    started.evaluate("code => inpage.python(code)", stray)
    assert started.evaluate("inpage.python('1 + 1')") == 2
    expect(started.locator("#failure")).to_be_hidden()


def test_the_interpreter_dies_at_work(started: Page) -> None:
    """A wild read ends the wasm instance: this call and later ones fail, the page explains."""
    crash = "import ctypes; ctypes.string_at(0xFFFFFFF0, 64)"
    script = "code => inpage.python(code).then(() => 'survived', error => error.code)"
    assert started.evaluate(script, crash) == "crashed"
    expect_explanation(started, "The engine stopped", "Nothing you typed has left this machine")
    assert started.evaluate(script, "1") == "crashed"
