"""The default model in the page, used as a user would: its words are torch's words.

On the GPU in the page its numbers are torch's in test_goldens.py.
"""

from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import Browser, expect
from safetensors.numpy import load_file

from py_runtime.tokens import Tokenizer
from tests.conftest import serving
from tests.web.user import User, until
from tools.files import ROOT

FOLDER = ROOT / "models" / "SmolLM2-135M-Instruct"
QUESTION = "What is gravity?"  # the goldens' first prompt
WORDS = 12  # tokens of an answer: where all is software, a few take a second
WEIGHTS = "weights-00001-of-00001.safetensors"
SLOWLY = 180_000
# After the second piece of the next answer; others are to come, however late the test would be.
LOSE_THE_DEVICE = """
async def generate(*arguments):
    number = 0
    async for piece in type(model)._generate(model, *arguments):
        yield piece
        number += 1
        if number == 2:
            engine.device.destroy()

model._generate = generate
"""

pytestmark = [pytest.mark.browser, pytest.mark.built, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def goldens() -> dict[str, np.ndarray]:
    return load_file(FOLDER / "goldens.safetensors")


@pytest.fixture(scope="module")
def torchs_answer(goldens: dict[str, np.ndarray]) -> str:
    tokenizer = Tokenizer.from_json((FOLDER / "tokenizer.json").read_bytes())
    return tokenizer.decode(goldens["continuation_0"].tolist()[:WORDS])


@pytest.fixture(scope="module")
def user(browser: Browser) -> Iterator[User]:
    """Start a visit; the tests below may follow each other, and none needs another."""
    with serving() as address:
        context = browser.new_context()
        user = User(context.new_page(), address)
        user.open()
        assert not any(WEIGHTS in url for url in user.requests), "nothing is fetched before Load"
        user.load()
        user.choose(temperature="0", max_tokens=str(WORDS))
        yield user
        context.close()


def test_an_answer_is_torchs_and_regenerating_gives_it_again(
    user: User, torchs_answer: str
) -> None:
    assert user.text_of(user.ask(QUESTION)) == torchs_answer
    assert any(WEIGHTS in url for url in user.requests)
    assert user.text_of(user.regenerate()) == torchs_answer


def test_stop_and_a_second_turn(user: User) -> None:
    before = user.answers.count()
    user.choose(max_tokens="200")
    user.composer.fill("Tell me about the sea.")
    user.composer.press("Enter")
    user.page.wait_for_function(
        "() => document.querySelector('.message:last-child .text').textContent.length > 10",
        timeout=SLOWLY,
    )
    user.stop.click()
    expect(user.answered().locator(".note")).to_contain_text("Stopped")
    user.choose(max_tokens=str(WORDS))
    assert user.text_of(user.ask("And about rivers?")).strip()
    expect(user.answers).to_have_count(before + 2)


def test_a_lost_device_changes_no_word(user: User, torchs_answer: str) -> None:
    user.new_chat()
    user.page.evaluate("code => inpage.python(code)", LOSE_THE_DEVICE)
    assert user.text_of(user.ask(QUESTION)) == torchs_answer
    expect(user.notices).to_contain_text("The device is back")


@pytest.mark.thorough  # folder/test_loading.py has the toy
def test_a_second_visit_fetches_no_weights(user: User, torchs_answer: str) -> None:
    if not user.page.get_by_role("button", name=QUESTION).count():
        user.ask(QUESTION)
    user.requests.clear()
    user.page.goto(user.url)
    user.has_opened()
    user.page.get_by_role("button", name=QUESTION).first.click()
    until(user.page, lambda: user.text_of(user.answers.last) == torchs_answer, "history is kept")
    user.has_loaded()  # by itself: the first visit kept it
    assert not any(WEIGHTS in url for url in user.requests)
    assert user.text_of(user.ask("Thank you.")).strip()


def test_token_ids_are_the_goldens(user: User, goldens: dict[str, np.ndarray]) -> None:
    answer = user.page.evaluate(
        "request => inpage.completions.create(request)",
        {
            "prompt_token_ids": goldens["prompt_1"].tolist(),
            "temperature": 0,
            "max_tokens": 32,
            "ignore_eos": True,
        },
    )
    assert answer["choices"][0]["token_ids"] == goldens["continuation_1"].tolist()[:32]
    assert answer["usage"]["completion_tokens"] == 32
