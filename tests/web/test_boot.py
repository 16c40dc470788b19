"""The page starts, computes, stays on its origin, and offers Python to its user."""

import re
from collections import Counter
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

pytestmark = pytest.mark.browser


class Watched:
    """A started page, and what it did meanwhile."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._console)

    def _console(self, message: object) -> None:
        if message.type in ("error", "warning"):  # type: ignore[attr-defined]
            self.complaints.append(message.text)  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def started(browser: Browser, site_url: str) -> Iterator[Watched]:
    watched = Watched(browser.new_page())
    watched.page.goto(site_url)
    watched.page.evaluate("inpage.ready.then(() => null)")
    yield watched
    watched.page.close()


def test_start_up_is_shown_and_returned(started: Watched) -> None:
    report = started.page.evaluate("inpage.ready")
    names = [phase["name"] for phase in report["phases"]]
    assert names == ["adapter", "Python", "runtime", "GPU"]
    assert all(phase["seconds"] >= 0 for phase in report["phases"])
    assert {"adapter", "features", "limits", "versions"} <= report.keys()
    expect(started.page.locator("#status")).to_contain_text("Ready in")
    expect(started.page.locator("#phases li")).to_have_count(4)
    expect(started.page.locator("#facts")).to_contain_text("swiftshader")


def test_python_is_restored_from_its_snapshot(started: Watched) -> None:
    assert started.page.evaluate("inpage.ready")["isRestored"] is True
    assert not any(url.endswith(".whl") for url in started.requests)
    code = "{'numpy', 'py_runtime.model.verify', 'jinja2'} <= {*__import__('sys').modules}"
    assert started.page.evaluate("code => inpage.python(code)", code) is True


def test_a_start_fetches_nothing_twice(started: Watched) -> None:
    """The snapshot is unzipped by a worker that does nothing else, and is gone when it has."""
    large = re.compile("/(pyodide|snapshots|assets)/")
    counts = Counter(url for url in started.requests if large.search(url))
    assert any(url.endswith("/memory.snapshot") for url in counts)
    assert [url for url, count in counts.items() if count > 1] == []
    assert any(url.endswith("/unzip_worker.js") for url in started.requests)
    assert not any(worker.url.endswith("/unzip_worker.js") for worker in started.page.workers)


def test_python_is_restored_where_another_worker_may_not_start(
    browser: Browser, site_url: str
) -> None:
    page = browser.new_page()
    page.route("**/unzip_worker.js", lambda route: route.abort())
    page.goto(site_url)
    assert page.evaluate("inpage.ready")["isRestored"] is True
    page.close()


def test_restored_pages_differ_in_chance(started: Watched, browser: Browser, site_url: str) -> None:
    other = browser.new_page()
    other.goto(site_url)
    code = "inpage.python('__import__(\"random\").random()')"
    assert started.page.evaluate(code) != other.evaluate(code)
    other.close()


def test_modules_that_the_snapshot_lacks_are_fetched(started: Watched) -> None:
    code = "before = 'numpy.random' in __import__('sys').modules; before, np.random.default_rng(3)"
    before, generator = started.page.evaluate("code => inpage.python(code)", code)
    assert before is False
    assert "Generator" in generator["repr"]
    assert any("/numpy-" in url for url in started.requests)


@pytest.mark.thorough  # test_failures.py has a page that goes on without it
def test_python_starts_without_its_snapshot(browser: Browser, site_url: str) -> None:
    page = browser.new_page()
    page.route("**/memory.snapshot", lambda route: route.fulfill(body="no snapshot at all"))
    page.goto(site_url)
    assert page.evaluate("inpage.ready")["isRestored"] is False
    assert page.evaluate("inpage.python('float(np.arange(4).sum())')") == 6
    page.close()


def test_the_device_has_the_adapters_limits_and_features(started: Watched) -> None:
    limits = """async () => {
        const adapter = await navigator.gpu.requestAdapter({powerPreference: "high-performance"});
        return [adapter.limits.maxBufferSize, adapter.limits.maxStorageBufferBindingSize,
                ["shader-f16", "subgroups", "timestamp-query"]
                    .filter(feature => adapter.features.has(feature))];
    }"""
    largest_buffer, largest_binding, features = started.page.evaluate(limits)
    report = started.page.evaluate("inpage.ready")
    assert report["limits"]["max_buffer_size"] == largest_buffer
    assert report["limits"]["max_storage_buffer_binding_size"] == largest_binding
    assert report["features"] == sorted(features)


def test_the_page_is_isolated(started: Watched) -> None:
    assert started.page.evaluate("crossOriginIsolated") is True


def test_no_inline_script_or_eval(started: Watched) -> None:
    assert started.page.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "globalThis.inlineRan = true";
        document.head.append(script);
        return globalThis.inlineRan === undefined;
    }""")


def test_main_thread_never_runs_python(started: Watched) -> None:
    assert started.page.evaluate("typeof loadPyodide") == "undefined"
    assert started.page.evaluate("inpage.python('import js; str(type(js.self))')")
    kind = started.page.evaluate("inpage.python('import js; js.self.constructor.name')")
    assert kind == "DedicatedWorkerGlobalScope"


def test_no_request_leaves_the_origin(started: Watched, site_url: str) -> None:
    outside = [url for url in started.requests if not url.startswith((site_url, "data:", "blob:"))]
    assert outside == []
    assert any(url.endswith("pyodide.asm.wasm") for url in started.requests)
    assert any("/snapshots/" in url for url in started.requests)


def test_the_notebook_runs_an_experiment(started: Watched) -> None:
    started.page.get_by_role("button", name="Python").click()
    started.page.get_by_role("button", name="One kernel, any length").click()
    expect(started.page.get_by_role("log").last).to_contain_text("largest difference")
    found = started.page.evaluate("inpage.python('differences')")
    assert [row["rows"] for row in found] == [64, 7, 1]
    assert all(0 < row["largest difference"] < 1e-5 for row in found)


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("1 + 1", 2),
        ("None", None),
        ("x = 5\nx * 2", 10),
        ("await __import__('asyncio').sleep(0, 'slept')", "slept"),
        ("np.arange(4, dtype=np.float32).reshape(2, 2)",
         {"dtype": "float32", "shape": [2, 2], "data": [[0, 1], [2, 3]]}),
        ("[float('nan'), float('inf'), -float('inf')]", ["NaN", "Infinity", "-Infinity"]),
        ("{'a': (1, np.int64(2)), 3: {True}}", {"a": [1, 2], "3": [True]}),
        ("object", {"repr": "<class 'object'>"}),
        ("b'hi'", {"base64": "aGk="}),
    ],
)  # fmt: skip
def test_python_values_come_back_as_json(started: Watched, code: str, value: object) -> None:
    assert started.page.evaluate("code => inpage.python(code)", code) == value


def test_what_python_defines_stays(started: Watched) -> None:
    started.page.evaluate("inpage.python('kept = 41')")
    assert started.page.evaluate("inpage.python('kept + 1')") == 42


def test_python_errors_come_back_with_their_traceback(started: Watched) -> None:
    error = started.page.evaluate("""
        inpage.python("def f():\\n  return 1 / 0\\nf()")
            .catch(e => ({code: e.code, message: e.message, traceback: e.traceback}))
    """)
    assert error["code"] == "python_error"
    assert error["message"] == "ZeroDivisionError: division by zero"
    assert "line 2, in f" in error["traceback"]


def test_a_cell_shows_the_traceback(started: Watched) -> None:
    cell = started.page.get_by_role("region", name="Code cell").last
    code = cell.get_by_role("textbox", name="Code")
    code.fill("1 / 0")
    code.press("Control+Enter")
    expect(cell.get_by_role("log")).to_contain_text("ZeroDivisionError")


def test_nothing_was_complained_about(started: Watched) -> None:
    """Only the inline script above and Playwright, which keeps service workers out, complained.

    The test is the last in its file for that.
    """
    expected = ("inline script", "blocked by Playwright")
    unexpected = [
        text for text in started.complaints if not any(words in text for words in expected)
    ]
    assert unexpected == []
