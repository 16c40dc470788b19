"""GGUF files in the page: dropped, chosen, in parts, of the site; told about, and chatted with."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Route, expect

from export.default_model import default_gguf
from tests.conftest import serving
from tests.gguf import small
from tests.gguf.written import file
from tests.runners import HEAP, MAX_GROWTH, PageRunner
from tests.web.test_looks import assert_accessible
from tests.web.user import User, until

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

ASK = """inpage.chat.completions.create({
    messages: [{ role: "user", content: "the" }], seed: 7, max_tokens: 12, ignore_eos: true,
}).then(({ choices }) => choices[0].message.content)"""

GREEDY = """inpage.chat.completions.create({
    messages: [{ role: "user", content: "What is gravity?" }], temperature: 0, max_tokens: 8,
}).then(({ choices }) => choices[0].token_ids)"""


def parts() -> list[bytes]:
    tensors = small.tensors()
    split = {"split.count": 2, "split.tensors.count": len(tensors)}
    first = file(small.metadata() | split | {"split.no": 0}, tensors[:6])
    return [first, file(split | {"split.no": 1}, tensors[6:])]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    (folder / "small.Q8_0.gguf").write_bytes(small.small_file())
    for number, data in enumerate(parts(), 1):
        (folder / f"big-0000{number}-of-00002.gguf").write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def user(browser: Browser, models: Path) -> Iterator[User]:
    """Open one page for all of them."""
    with serving("--models", str(models)) as address:
        context = browser.new_context()
        user = User(context.new_page(), address)
        user.open()
        yield user
        context.close()


@pytest.fixture
def python(user: User) -> Callable[[str], Any]:
    return PageRunner(user.page).python


@pytest.fixture
def dialog(user: User) -> Iterator[Locator]:
    """Return the dialog that a drop shows, and close it at the end."""
    yield user.page.get_by_role("dialog", name="Your file")
    user.page.keyboard.press("Escape")


def answer(user: User) -> str:
    said: str = user.page.evaluate(ASK)
    return said


def test_the_site_lists_them(user: User, models: Path) -> None:
    sizes = {entry["name"]: entry["size"] for entry in user.page.evaluate("inpage.models()")}
    assert sizes["small.Q8_0"] == (models / "small.Q8_0.gguf").stat().st_size
    assert sizes["big"] == sum(map(len, parts()))


def test_a_dropped_file_answers_as_that_of_the_site(
    user: User, python: Callable[[str], Any], dialog: Locator
) -> None:
    described = user.page.evaluate("inpage.load('small.Q8_0')")
    assert (described["name"], described["context"]) == ("small.Q8_0", 64)
    assert "Q8_0" in described["facts"]
    said = answer(user)
    assert said
    user.drop({"mine.gguf": small.small_file()})
    expect(user.notices).to_contain_text("mine is ready.")
    expect(dialog).to_be_hidden()
    assert_accessible(user, state="a model is ready")
    user.notices.get_by_role("button", name="Details").click()
    expect(dialog).to_contain_text("You can chat with it now")
    expect(dialog).to_contain_text("tokenizer.ggml.tokens")
    user.page.keyboard.press("Escape")
    expect(user.page.locator("#modelName")).to_have_text("mine")
    assert answer(user) == said
    python("engine.device.destroy()")
    assert answer(user) == said, "the file is read again, from the user's disk"
    user.page.evaluate("inpage.load('big').then(() => null)")
    assert answer(user) == said, "in parts, from the site"


def test_parts_are_chosen_together(user: User, models: Path, dialog: Locator) -> None:
    chosen = sorted(models.glob("big-*.gguf"))
    user.page.locator("#files").set_input_files(chosen)
    expect(user.notices).to_contain_text("big is ready.")
    user.notices.locator(".ready").get_by_role("button", name="Dismiss").click()
    expect(user.notices.locator(".ready")).to_have_count(0)
    expect(user.page.locator("#modelName")).to_have_text("big")
    expect(user.page.locator("#files")).to_have_value("")  # the same ones can be chosen again
    user.page.locator("#files").set_input_files(chosen[:1])
    expect(dialog).to_contain_text("of which these were not given: 2; give all of them together")


def test_a_file_that_cannot_be_loaded_is_told_about(user: User, dialog: Locator) -> None:
    user.drop({"torn.gguf": small.small_file()[:3000]})
    expect(dialog).to_contain_text("It cannot be loaded: torn.gguf is not a whole GGUF file")
    user.drop({"other.gguf": small.small_file(**{"llama.expert_count": 8})})
    expect(dialog).to_contain_text("asks for mixtures of experts, which this engine does not")
    expect(dialog).to_contain_text("llama.expert_count")
    user.page.keyboard.press("Escape")
    expect(user.page.locator("#modelName")).to_have_text("big")  # it stays


def test_a_file_that_is_refused_late_leaves_the_model_in_use(user: User, dialog: Locator) -> None:
    """Its weights take the place of the model's before the last of them shows what is wrong."""
    described = user.page.evaluate("inpage.load('big', { kernels: 'portable' })")
    said = answer(user)
    user.drop({"spoilt.gguf": small.spoilt_file()})
    expect(dialog).to_contain_text("'blk.0.ffn_down.weight' has values that are infinite")
    expect(user.notices.locator(".ready")).to_have_count(0)
    user.page.keyboard.press("Escape")
    expect(user.page.locator("#modelName")).to_have_text("big")
    assert user.page.evaluate("inpage.loaded") == described
    assert answer(user) == said


def test_a_load_that_is_cancelled_brings_nothing_back(user: User) -> None:
    user.page.evaluate("inpage.load('big').then(() => null)")
    held: list[Route] = []
    # So that it is not over before Stop.
    user.page.route("**/small.Q8_0.gguf", lambda route: held.append(route))
    user.page.evaluate("""() => {
      globalThis.wanted = new AbortController();
      const loading = inpage.load("small.Q8_0", { signal: wanted.signal });
      globalThis.ended = loading.then(() => "loaded", (error) => error.code);
    }""")
    until(user.page, lambda: held, "the file is asked for")
    assert user.page.evaluate("wanted.abort(), ended") == "aborted"
    user.page.unroute_all(behavior="ignoreErrors")
    assert user.page.evaluate("inpage.loaded") is None


@pytest.mark.model
def test_the_default_model_dropped_answers_as_its_folder(browser: Browser, site_url: str) -> None:
    """Token for token. The heap never shrinks: what it grows by is what a load needs at once."""
    context = browser.new_context()
    user = User(context.new_page(), f"{site_url}?device=cpu")
    user.page.goto(user.url)
    user.page.evaluate("inpage.ready.then(() => null)")
    python = PageRunner(user.page).python
    before = python(HEAP)
    user.page.locator("#files").set_input_files(default_gguf())
    expect(user.notices).to_contain_text(" is ready.")
    described = user.page.evaluate("inpage.loaded")
    assert described["facts"].startswith("134.5 million parameters · 98.4 MB · context of 2048")
    assert python(HEAP) - before < MAX_GROWTH
    said = user.page.evaluate(GREEDY)
    assert len(said) == 8
    user.page.evaluate("inpage.load('SmolLM2-135M-Instruct').then(() => null)")
    assert user.page.evaluate(GREEDY) == said
    context.close()
