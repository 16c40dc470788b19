"""The service worker: releases by hash, offered and never forced; on a plain host, too."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserType, Page, expect
from starlette.types import Receive, Scope, Send

from serve import create_app
from tests.conftest import serving_folder
from tests.tools.small_site import make_python, serving_app
from tools.compress import VariantStore
from tools.files import ROOT
from tools.site import Site
from tools.vendor import VENDOR

pytestmark = pytest.mark.browser

LIBRARIES = ("dompurify.js", "idb.js", "marked.js")  # which every page asks for
KEEP = "import('/ui/service_worker.js').then(({keepOffline}) => keepOffline())"
ASK_TO_KEEP = """() => new Promise(resolve => {
    const {serviceWorker} = navigator;
    serviceWorker.addEventListener("message", ({data}) => resolve(data.kept));
    serviceWorker.startMessages();
    serviceWorker.ready.then(({active}) => active.postMessage("keep"));
})"""
KEPT_RELEASE = """async () => {
    const found = await (await caches.open("inpage")).match(`${location.href}site.json`);
    return (await found.json()).release;
}"""
TEXT_OF = "path => fetch(path).then(response => response.text())"
KEEP_TWICE = """() => new Promise(resolve => {
    const {serviceWorker} = navigator;
    const kept = [];
    serviceWorker.addEventListener("message", ({data}) => {
        if (kept.push(data.kept) === 2) resolve(kept);
    });
    serviceWorker.startMessages();
    serviceWorker.ready.then(({active}) => {
        active.postMessage("keep");
        active.postMessage("keep");
    });
})"""


@pytest.fixture
def web(tmp_path: Path) -> Path:
    """Make a copy of web/ that a test may change; its worker never starts."""
    copy = tmp_path / "web"
    shutil.copytree(ROOT / "web", copy)
    (copy / "worker.js").write_text("")
    return copy


@pytest.fixture
def asked() -> list[str]:
    """Paths that the server was asked for."""
    return []


@pytest.fixture
def url(web: Path, tmp_path: Path, asked: list[str]) -> Iterator[str]:
    """Serve little of Python and few libraries: a browser hashes all that it keeps."""
    pyodide, wheels, snapshots = make_python(tmp_path)
    vendor = tmp_path / "vendor"
    vendor.mkdir()
    for name in LIBRARIES:
        shutil.copy(VENDOR / name, vendor)
    site = Site(web, pyodide, vendor, wheels, snapshots, None)
    app = create_app(site, VariantStore(tmp_path / "cache"))

    async def listening(scope: Scope, receive: Receive, send: Send) -> None:
        asked.append(scope.get("path", ""))
        await app(scope, receive, send)

    with serving_app(listening) as port:
        yield f"http://127.0.0.1:{port}/"


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Page]:
    """Open, with a release that is kept."""
    context = browser.new_context(service_workers="allow")
    page = context.new_page()
    open_kept(page, url)
    yield page
    context.close()


def open_kept(page: Page, url: str) -> str:
    """Return the release's name."""
    page.goto(url)
    page.evaluate(KEEP)
    return kept(page)


def kept(page: Page) -> str:
    body = page.locator("body")
    expect(body).to_have_attribute("data-kept", re.compile("."))
    return body.get_attribute("data-kept") or ""


def change(web: Path, name: str, mark: str) -> None:
    path = web / name
    path.write_text(f"{path.read_text()}\n{mark}\n")


def test_a_model_comes_before_what_is_kept(browser: Browser, url: str) -> None:
    context = browser.new_context(service_workers="allow")
    page = context.new_page()
    page.goto(url)
    page.evaluate("""() => {
        Object.assign(globalThis, { asked: 0, loads: 1, looks: 0 });
        ServiceWorker.prototype.postMessage = () => { asked++; };
        Object.defineProperty(inpage, "loads", { get: () => { looks++; return loads; } });
    }""")
    page.evaluate(f"() => {{ globalThis.keeping = {KEEP}; }}")
    page.wait_for_function("() => looks > 2 || asked")
    assert page.evaluate("asked") == 0, "it has looked several times, and a model is still coming"
    page.evaluate("() => { loads = 0; }")
    assert page.evaluate("keeping.then(() => asked)") == 1
    context.close()


def test_a_change_is_seen_on_reload(page: Page, web: Path) -> None:
    before = kept(page)
    change(web, "style.css", "/* first change */")
    page.reload()
    assert "first change" in page.evaluate(TEXT_OF, "style.css")
    page.evaluate(KEEP)
    assert kept(page) != before
    names: list[str] = page.evaluate(
        """async () => (await (await caches.open("inpage")).keys()).map(({url}) => url)"""
    )
    assert len([name for name in names if "style.css" in name]) == 1, "the old release is gone"
    assert any("pyodide.asm.wasm" in name for name in names)
    change(web, "style.css", "/* second change */")
    page.reload()
    assert "second change" in page.evaluate(TEXT_OF, "style.css")


def test_a_tab_keeps_its_release_until_it_is_reloaded(page: Page, web: Path, url: str) -> None:
    page.reload()  # through the worker
    page.evaluate(KEEP)
    kept(page)
    change(web, "ui/panels/notebook.js", "// changed")
    other = page.context.new_page()
    open_kept(other, url)
    assert "// changed" in other.evaluate(TEXT_OF, "ui/panels/notebook.js")
    assert "// changed" not in page.evaluate(TEXT_OF, "ui/panels/notebook.js")
    page.reload()
    assert "// changed" in page.evaluate(TEXT_OF, "ui/panels/notebook.js")


def test_a_new_version_is_offered_and_not_forced(page: Page, web: Path) -> None:
    offer = page.get_by_text("There is a newer version of this page.")
    page.evaluate("dispatchEvent(new Event('visibilitychange'))")
    expect(offer).to_be_hidden()
    change(web, "style.css", "/* changed */")
    page.evaluate("document.body.dataset.running = ''; globalThis.stays = true")
    page.evaluate("Date.now = () => 1e15; dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator("#newVersion")).not_to_have_attribute("hidden", "")
    expect(offer).to_be_hidden()  # in the middle of an answer
    page.evaluate("delete document.body.dataset.running")
    expect(offer).to_be_visible()
    assert page.evaluate("stays")
    with page.expect_navigation():
        page.get_by_role("button", name="Reload").click()
    assert "changed" in page.evaluate(TEXT_OF, "style.css")
    expect(offer).to_be_hidden()


def test_headers_that_changed_hold_for_files_that_did_not(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    describe = Site.describe
    policy = {"content-security-policy": "default-src 'self'; connect-src 'self' https://a.test"}

    def with_another_policy(site: Site) -> dict[str, Any]:
        described = describe(site)
        return {**described, "headers": described["headers"] | policy}

    monkeypatch.setattr(Site, "describe", with_another_policy)
    answered = page.reload()
    assert answered
    assert answered.header_value("content-security-policy") == policy["content-security-policy"]


def test_a_release_that_is_not_whole_is_not_kept(
    page: Page, web: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that is being updated sends other files than site.json lists.

    Then storage is full, and the page still opens: nobody could delete a model to make room else.
    """
    before = kept(page)
    describe = Site.describe

    def torn(site: Site) -> dict[str, Any]:
        described = describe(site)
        return {**described, "files": {**described["files"], "api.js": "0" * 64}}

    change(web, "style.css", "/* changed */")
    with monkeypatch.context() as patch:
        patch.setattr(Site, "describe", torn)
        page.reload()
        assert page.evaluate(ASK_TO_KEEP) == ""
        assert "changed" in page.evaluate(TEXT_OF, "style.css")
        assert page.evaluate(KEPT_RELEASE) == before

    session = page.context.new_cdp_session(page)
    session.send("Storage.overrideQuotaForOrigin", {"origin": url.rstrip("/"), "quotaSize": 1})
    page.reload()
    expect(page.get_by_label("Message", exact=True)).to_be_visible()
    assert "changed" in page.evaluate(TEXT_OF, "style.css")
    assert page.evaluate("fetch('models.json').then(response => response.json())") == []
    assert page.evaluate(ASK_TO_KEEP) == "", "not all of it is there"
    assert page.evaluate(KEPT_RELEASE) == before


def test_tabs_that_keep_at_once_fetch_a_release_once(
    page: Page, web: Path, asked: list[str]
) -> None:
    """The tabs take turns: what one has just put, another would take for an old release's."""
    change(web, "ui/panels/notebook.js", "// changed")
    asked.clear()
    first, second = page.evaluate(KEEP_TWICE)
    assert first == second != ""
    assert asked.count("/ui/panels/notebook.js") == 1


def test_without_service_workers_the_page_opens_all_the_same(browser: Browser, url: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.add_init_script("delete Navigator.prototype.serviceWorker")
    page.goto(url)
    page.evaluate(KEEP)
    expect(page.get_by_label("Message", exact=True)).to_be_visible()
    assert faults == []
    context.close()


def test_the_page_can_be_installed(
    browser_type: BrowserType, browser_type_launch_args: dict[str, Any], url: str, tmp_path: Path
) -> None:
    """A profile of its own: private windows install nothing."""
    context = browser_type.launch_persistent_context(
        tmp_path / "profile", **browser_type_launch_args
    )
    page = context.new_page()
    open_kept(page, url)
    page.reload()
    devtools = context.new_cdp_session(page)
    manifest = devtools.send("Page.getAppManifest")
    assert manifest["errors"] == []
    assert manifest["url"] == f"{url}inpage.webmanifest"
    assert devtools.send("Page.getInstallabilityErrors")["installabilityErrors"] == []
    context.close()


@pytest.mark.thorough  # tests/web/test_promises.py has the page itself offline
def test_a_static_build_in_a_subfolder_works_and_does_so_offline(
    browser: Browser, static_site: Path
) -> None:
    context = browser.new_context(service_workers="allow")
    page = context.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    with serving_folder(static_site.parent) as address:
        url = f"{address}{static_site.name}/"
        page.goto(url)
        expect(page.locator("#status")).to_contain_text("Ready in")
        assert page.evaluate("crossOriginIsolated"), "without a header of the host's"
        assert page.evaluate("inpage.python('1 + 1')") == 2
        assert [asked for asked in requests if not asked.startswith(url)] == []
        kept(page)
    page.goto("about:blank")
    page.goto(url)
    expect(page.locator("#status")).to_contain_text("Ready in")
    assert page.evaluate("crossOriginIsolated")
    assert page.evaluate("inpage.python('1 + 1')") == 2
    context.close()
