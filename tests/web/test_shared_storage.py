"""Cross-Origin Storage: two sites of a browser that offers it have one copy of a model's files."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Route, expect

from tests.web.user import User

# No browser has it yet.
pytestmark = [pytest.mark.browser, pytest.mark.thorough]

# What a browser has that offers it, for the page and for its worker: files by their hashes, which
# the test keeps; the draft is https://wicg.github.io/cross-origin-storage/.
OFFERED = """Object.defineProperty(navigator, "crossOriginStorage", {value: {
    async requestFileHandle({algorithm, value}, {create = false, origins} = {}) {
        if (algorithm !== "SHA-256") throw new TypeError(algorithm);
        const url = new URL(`/cross-origin/${value}`, location.href);
        const found = await fetch(url);
        if (!create && !found.ok) throw new DOMException("there is none", "NotFoundError");
        return {
            getFile: async () => new File([await found.blob()], value, {lastModified: 1}),
            async createWritable() {
                if (origins !== "*") throw new TypeError("other sites cannot read it");
                const parts = [];
                return {
                    write: async part => { parts.push(part); },
                    async close() { await fetch(url, {method: "PUT", body: new Blob(parts)}); },
                };
            },
        };
    },
}});
"""
HERE = """async () => {
    const all = await navigator.storage.getDirectory();
    const folder = await all.getDirectoryHandle("inpage-models");
    const names = [];
    for await (const name of folder.keys()) names.push(name.split("-")[0]);
    return names.sort();
}"""


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    """Return what the browser stores for all sites."""
    return {}


@pytest.fixture(scope="module")
def context(browser: Browser, files: dict[str, bytes]) -> Iterator[BrowserContext]:
    """Open a browser that offers Cross-Origin Storage."""
    context = browser.new_context(service_workers="block")
    context.add_init_script(OFFERED)

    def worker(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=OFFERED + answer.text())

    def shared(route: Route) -> None:
        name = route.request.url.rsplit("/", 1)[1]
        if route.request.method == "PUT":
            files[name] = route.request.post_data_buffer or b""
            route.fulfill(status=204)
        elif name in files:
            route.fulfill(body=files[name])
        else:
            route.fulfill(status=404)

    context.route("**/worker.js", worker)
    context.route("**/cross-origin/*", shared)
    yield context
    context.close()


def opened(context: BrowserContext, address: str) -> User:
    user = User(context.new_page(), address)
    user.open()
    return user


def allow(user: User) -> None:
    user.page.locator("#modelChip").click()
    user.page.get_by_label("Share one copy of each model with other sites").check()
    expect(user.page.locator("#sharingStatus")).to_contain_text("do not download it again")
    user.page.keyboard.press("Escape")


def test_two_sites_share_a_copy(
    context: BrowserContext, files: dict[str, bytes], toy_site_url: str
) -> None:
    """One server is two sites, by its two names."""
    first = opened(context, toy_site_url)
    first.load()
    assert not files, "nobody has allowed it"
    assert "file" in first.page.evaluate(HERE)
    allow(first)
    whole = sorted(map(len, files.values()))
    assert whole, "what was stored is shared"
    assert "file" not in first.page.evaluate(HERE), "there is one copy"
    said = greedy(first)
    first.page.reload()
    first.has_opened()
    first.has_loaded()
    assert greedy(first) == said, "it is read from the shared copy"
    first.page.close()

    second = opened(context, toy_site_url.replace("127.0.0.1", "localhost"))
    allow(second)
    before = len(second.requests)
    second.load()
    assert not any("safetensors" in url for url in second.requests[before:])
    assert greedy(second) == said
    assert sorted(map(len, files.values())) == whole

    files.clear()  # the browser may, at any time
    second.page.evaluate("inpage.load('Toy').then(() => null)")
    assert any("safetensors" in url for url in second.requests)
    assert greedy(second) == said


def greedy(user: User) -> Any:
    return user.page.evaluate(
        """inpage.completions.create({
            prompt_token_ids: [5, 7, 9], temperature: 0, max_tokens: 4, ignore_eos: true,
        }).then(({choices}) => choices[0].token_ids)"""
    )


def test_browsers_without_it_offer_nothing(browser: Browser, toy_site_url: str) -> None:
    user = User(browser.new_page(), toy_site_url)
    user.open()
    user.page.locator("#modelChip").click()
    expect(user.page.get_by_role("heading", name="Stored here")).to_be_visible()
    expect(user.page.get_by_label("Share one copy of each model")).to_be_hidden()
    assert not user.page.evaluate("inpage.shareStored(true)")
    user.page.close()
