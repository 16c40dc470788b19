"""Models on the Hub in the page: asked for, chosen, fetched, kept, loaded without the network."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gguf import GGMLQuantizationType as Kind
from playwright.sync_api import Browser, Locator, expect

from export.gguf_source import GgufSource
from export.reference import greedy, reference_decoder
from export.sources import Quantisation
from tests.conftest import serving
from tests.export.gguf_files import write_gguf
from tests.gguf import small
from tests.hub.imitation import COMMIT, HELD, TOKEN, WRONG, Imitation
from tests.web.user import User

pytestmark = [pytest.mark.browser, pytest.mark.torch, pytest.mark.thorough]

LLAMA, SMALL, GATED = "toys/llama-GGUF", "toys/small-GGUF", "toys/gated-GGUF"
PROMPT, STEPS, CLEAR_MARGIN = [5, 100, 7, 200, 31, 8, 300, 9, 44], 8, 1e-3
DOWNLOAD = re.compile(r"^Use \(.* download\)")
CODE = "error => error.code"
GREEDY = f"""inpage.completions.create({{
    prompt_token_ids: {PROMPT}, temperature: 0, max_tokens: {STEPS}, ignore_eos: true,
}}).then(({{ choices }}) => choices[0].token_ids)"""


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("llama") / "llama-Q8_0.gguf"
    write_gguf(path, "llama 2", "llama", Kind.Q8_0)
    return path


@pytest.fixture(scope="module")
def user(browser: Browser, hub: Imitation, llama: Path, tmp_path_factory: Any) -> Iterator[User]:
    """Open a page of a site without models of its own."""
    hub.put(LLAMA, llama_Q8_0__gguf=llama.read_bytes(), notes__md=b"")
    hub.put(SMALL, small_Q8_0__gguf=small.small_file(), small_Q4_0__gguf=small_q4())
    hub.repositories[SMALL].downloads, hub.repositories[SMALL].parameters = 1234567, 1_700_000_000
    hub.put(GATED, gated_Q8_0__gguf=small.small_file(**{"general.name": "gated"})).gated = True
    models = str(tmp_path_factory.mktemp("none"))
    with serving("--models", models, "--hub", hub.hub, hub.cdn) as address:
        context = browser.new_context()
        user = User(context.new_page(), address)
        started(user)
        yield user
        context.close()


def small_q4() -> bytes:
    from tests.gguf.written import file

    return file(small.metadata(), small.tensors("Q4_0"))


def started(user: User) -> None:
    """Start the page, also with the model that is kept, which a page loads by itself."""
    user.page.goto(user.url)
    user.page.evaluate("inpage.ready.then(() => null)")
    user.has_opened()
    if user.page.evaluate("inpage.models().then((all) => all.some(({ stored }) => stored))"):
        expect(user.page.locator("body")).to_have_attribute("data-model", "ready")


def opened(user: User) -> Locator:
    """Open the panel of models, from the card of a page without one, or from the chip."""
    if user.page.evaluate("inpage.loaded"):
        user.page.locator("#modelChip").click()
    else:
        user.page.locator("#loader [data-opens=models]").click()
    return user.page.get_by_role("dialog", name="Models")


@pytest.fixture
def dialog(user: User) -> Iterator[Locator]:
    """Return the panel, and close it at the end."""
    yield opened(user)
    user.page.evaluate("document.querySelectorAll('dialog[open]').forEach(each => each.close())")


@pytest.fixture
def look(dialog: Locator) -> Callable[[str], None]:
    def find(name: str) -> None:
        dialog.get_by_label("Search the Hugging Face Hub").fill(name)
        dialog.get_by_role("button", name="Search").click()

    return find


@pytest.fixture
def asked(user: User) -> Locator:
    return user.page.get_by_role("dialog", name="Allow this page to contact the Hugging Face Hub?")


def ready(user: User, name: str) -> None:
    expect(user.page.locator("#modelName")).to_have_text(name)
    expect(user.page.locator("body")).to_have_attribute("data-model", "ready")


# In this order: what one test allows or keeps, the next ones have ---------------------------------


def test_nobody_is_asked_before_the_user_allows_it(
    user: User, hub: Imitation, dialog: Locator, look: Callable[[str], None], asked: Locator
) -> None:
    expect(dialog.get_by_role("button", name="Choose")).not_to_have_count(0)
    assert user.faults_of_access() == []
    look(LLAMA)
    expect(asked).to_contain_text("Your chats stay on this machine")
    expect(asked).to_contain_text(hub.hub.removeprefix("http://"))
    assert user.faults_of_access() == []
    asked.get_by_role("button", name="Not now").click()
    expect(dialog.get_by_role("alert")).to_contain_text("since you have not allowed it")
    user.page.evaluate(f"globalThis.code = inpage.load('hf:{LLAMA}').catch({CODE}); null")
    expect(asked).to_be_visible()  # a script is asked back as well
    user.page.keyboard.press("Escape")
    assert user.page.evaluate("code") == "hub_consent"
    assert hub.seen == []


def test_torch_s_tokens_from_the_hub(
    user: User,
    hub: Imitation,
    llama: Path,
    dialog: Locator,
    look: Callable[[str], None],
    asked: Locator,
) -> None:
    look(f"https://huggingface.co/{LLAMA}")
    asked.get_by_role("button", name="Allow").click()
    expect(dialog.locator("#hubFound")).to_have_text(
        f"{LLAMA} · licence: apache-2.0 · commit {COMMIT[:7]}"
    )
    expect(dialog.get_by_role("radio", name=re.compile("Q8_0.*recommended"))).to_be_checked()
    assert user.faults_of_access() == []
    dialog.get_by_role("button", name=DOWNLOAD).click()
    ready(user, "llama_Q8_0")
    source = GgufSource.open(llama, Quantisation("none"))
    tokens, margins = greedy(reference_decoder(source, source.decoder_config(None)), PROMPT, STEPS)
    clear = next((at for at, margin in enumerate(margins) if margin < CLEAR_MARGIN), STEPS)
    assert clear > 3, "a case that compares next to nothing"
    found = user.page.evaluate(GREEDY)
    assert found[:clear] == tokens[:clear]
    assert [seen for seen in hub.seen if seen.method == "OPTIONS"] == [], "no preflight"
    assert "hf_" not in str(hub.take_seen())


def test_it_loads_again_without_the_network(user: User, hub: Imitation) -> None:
    before = user.page.evaluate(GREEDY)
    hub.take_seen()
    started(user)
    expect(user.page.locator("#model option:checked")).to_have_text("llama_Q8_0")
    ready(user, "llama_Q8_0")  # by itself
    assert user.page.evaluate(GREEDY) == before
    described = user.page.evaluate(f"inpage.load('hf:{LLAMA}')")
    assert (described["from_cache"], described["source"]["name"]) == (True, LLAMA)
    assert hub.seen == []


def test_models_are_found_by_words(
    user: User, hub: Imitation, dialog: Locator, look: Callable[[str], None]
) -> None:
    look("toys gguf")
    expect(dialog.get_by_role("alert")).to_contain_text("no model with GGUF files by that name")
    hub.take_seen()
    look("GGUF")
    found = dialog.get_by_role("list", name="Models on the Hub").get_by_role("listitem")
    names = dialog.locator("#hubResults .name")
    expect(names.first).to_have_text(SMALL)  # it is downloaded most
    assert set(names.all_inner_texts()) == {LLAMA, SMALL, GATED}
    expect(found.first).to_contain_text(re.compile(r"about 1.0 GB · fits.* · 1,234,567 downloads"))
    (seen,) = hub.take_seen()
    assert "filter=gguf&sort=downloads&direction=-1" in seen.path
    gated = found.filter(has_text=GATED)
    gated.locator("summary").click()
    expect(gated).to_contain_text("its owner asks you to accept terms first")
    assert user.faults_of_access() == []
    dialog.get_by_role("button", name=f"Choose {SMALL}").click()
    expect(dialog.get_by_role("radio", name=re.compile("Q4_0.*recommended"))).to_be_checked()
    page = dialog.get_by_role("link", name="Read the model's page")
    expect(page).to_have_attribute("href", f"{hub.hub}/{SMALL}")


def test_a_download_is_paused_and_goes_on_after_a_reload(
    user: User, hub: Imitation, dialog: Locator, look: Callable[[str], None]
) -> None:
    size = len(small.small_file())
    hub.faults["small_Q8_0.gguf"] = HELD
    hub.go_on.clear()
    user.page.evaluate("inpage.deleteStored('small_Q8_0').catch(() => null)")
    look(SMALL)
    expect(dialog.get_by_role("radio", name=re.compile("Q4_0.*recommended"))).to_be_checked()
    dialog.get_by_role("radio", name=re.compile("Q8_0")).check()
    dialog.get_by_role("button", name=DOWNLOAD).click()
    expect(user.page.locator("#step-download")).to_contain_text(" of 24.4 kB")
    assert user.page.evaluate("inpage.loaded.name") == "llama_Q8_0", "until all of it is here"
    user.page.get_by_role("button", name="Pause").click()
    expect(user.page.locator("#loadError")).to_contain_text("resumes the download")
    hub.faults = {}
    hub.go_on.set()
    hub.take_seen()
    started(user)
    (paused,) = [m for m in user.page.evaluate("inpage.models()") if m["name"] == "small_Q8_0"]
    assert (paused["size"], paused["stored"]) == (size, False)
    assert 0 < paused["kept_bytes"] < size
    opened(user).get_by_role("button", name="Resume download").click()
    ready(user, "small_Q8_0")
    ranges = [seen.headers.get("range") for seen in hub.take_seen() if seen.host == "cdn"]
    assert ranges[-1] == f"bytes={paused['kept_bytes']}-"


def test_wrong_bytes_are_told_and_not_kept(user: User, hub: Imitation) -> None:
    hub.faults["small_Q4_0.gguf"] = WRONG
    error = user.page.evaluate(
        f"inpage.load('hf:{SMALL}/small_Q4_0.gguf').catch(e => [e.code, e.message])"
    )
    assert error[0] == "model_hash"
    assert "is not the file that the Hub lists" in error[1]
    hub.faults = {}
    (row,) = [m for m in user.page.evaluate("inpage.stored()") if m["name"] == "small_Q4_0"]
    assert (row["bytes"], row["complete"]) == (0, False)


def test_a_gated_model_takes_a_token_that_is_kept_only_if_asked(
    user: User, hub: Imitation, dialog: Locator, look: Callable[[str], None]
) -> None:
    look(GATED)
    expect(dialog.get_by_role("alert")).to_contain_text("needs your access token")
    token = dialog.get_by_label("Access token")
    expect(token).to_be_focused()
    link = dialog.get_by_role("link", name="Open the model's page on the Hub")
    expect(link).to_have_attribute("href", f"{hub.hub}/{GATED}")
    assert user.faults_of_access() == []
    hub.take_seen()
    token.fill(TOKEN)
    dialog.get_by_role("button", name="Use token").click()
    expect(dialog.get_by_role("radio", name=re.compile("Q8_0"))).to_be_checked()
    assert not any(TOKEN in seen.path for seen in hub.seen)
    assert not any("authorization" in seen.headers for seen in hub.seen if seen.host == "cdn")
    assert any(seen.headers.get("authorization") == f"Bearer {TOKEN}" for seen in hub.seen)
    kept = "JSON.stringify({ ...localStorage, ...sessionStorage })"
    assert TOKEN not in user.page.evaluate(kept)
    dialog.get_by_label("Save the token").check()
    dialog.get_by_role("button", name="Use token").click()
    expect(dialog.get_by_role("radio", name=re.compile("Q8_0"))).to_be_checked()
    assert TOKEN in user.page.evaluate(kept)


def test_consent_can_be_withdrawn(user: User, hub: Imitation, dialog: Locator) -> None:
    dialog.locator("#hubAccess").evaluate("details => { details.open = true }")
    expect(dialog).to_contain_text("You have allowed this page to contact the Hub")
    expect(dialog.locator("#hubStorage")).to_contain_text(" left")
    dialog.get_by_role("button", name="Withdraw my permission").click()
    expect(dialog).to_contain_text("you will be asked first")
    assert TOKEN not in user.page.evaluate("JSON.stringify({ ...localStorage })")
    hub.take_seen()
    user.page.evaluate(f"globalThis.code = inpage.hubFiles('{SMALL}').catch({CODE}); null")
    expect(user.page.get_by_role("dialog", name="Allow this page to contact")).to_be_visible()
    user.page.keyboard.press("Escape")
    assert user.page.evaluate("code") == "hub_consent"
    assert hub.seen == []


# Files of the user's own --------------------------------------------------------------------------


def test_a_copy_of_a_dropped_file_is_kept_when_asked(user: User) -> None:
    user.drop({"mine.gguf": small.small_file()})
    told = user.notices.locator(".ready")
    expect(told).to_contain_text("mine is ready.")
    names = "inpage.stored().then((rows) => rows.map(({ name }) => name))"
    assert "mine" not in user.page.evaluate(names)
    told.get_by_role("button", name="Keep a copy").click()
    expect(told).to_contain_text("This browser keeps a copy of mine")
    expect(told.get_by_role("button", name="Keep a copy")).to_be_hidden()
    panel = opened(user)
    expect(panel.locator("#loadedPlain")).to_contain_text("· stored in this browser")
    expect(panel.get_by_text("mine", exact=True)).to_have_count(1)
    expect(panel.get_by_role("button", name="Delete mine")).to_be_visible()
    assert user.faults_of_access() == []
    started(user)
    assert "mine" in user.page.evaluate(names)
    assert user.page.evaluate("inpage.load('mine').then(({ name }) => name)") == "mine"
    user.page.evaluate("inpage.deleteStored('mine')")
    assert "mine" not in user.page.evaluate(names)


REMEMBER = """async (bytes) => {
    const folder = await navigator.storage.getDirectory();
    const handle = await folder.getFileHandle("own.gguf", { create: true });
    const file = await handle.createWritable();
    await file.write(Uint8Array.from(bytes));
    await file.close();
    const { remember } = await import(new URL("ui/models/files.js", document.baseURI).href);
    await remember("own", [handle]);
}"""


def test_a_file_that_is_remembered_is_read_in_place(user: User) -> None:
    user.page.evaluate(REMEMBER, list(small.small_file()))
    started(user)
    dialog = opened(user)
    dialog.get_by_role("button", name="Open own").click()
    expect(user.notices).to_contain_text("own is ready.")
    ready(user, "own")
    user.page.evaluate(
        "navigator.storage.getDirectory().then((all) => all.removeEntry('own.gguf'))"
    )
    opened(user).get_by_role("button", name="Open own").click()
    expect(dialog).to_contain_text("own.gguf is no longer where it was")
    dialog.get_by_role("button", name="Forget own").click()
    expect(dialog.get_by_role("button", name="Open own")).to_have_count(0)
    assert user.complaints == []


# A site without the Hub ---------------------------------------------------------------------------


def test_a_site_without_the_hub_has_the_strict_page(browser: Browser, tmp_path: Path) -> None:
    with serving("--models", str(tmp_path), "--no-hub") as address:
        context = browser.new_context()
        user = User(context.new_page(), address)
        answer = user.page.goto(address)
        assert answer
        assert "connect-src 'self';" in answer.headers["content-security-policy"]
        user.page.evaluate("inpage.ready.then(() => null)")
        user.page.locator("#loader [data-opens=models]").click()
        expect(user.page.get_by_role("dialog", name="Models")).to_be_visible()
        expect(user.page.locator("#hubSection")).to_be_hidden()
        fault = user.page.evaluate("inpage.load('hf:a/b').catch(({ message }) => message)")
        assert fault == "this site does not let its page ask the Hub"
        context.close()
