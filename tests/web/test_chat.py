"""A conversation as a user has it, from the first question to a full context."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.toy_model import CONTEXT
from tests.web.user import User, until

pytestmark = pytest.mark.browser

STATS = re.compile(r"\d+ tokens · ([\d.]+) s \(([^)]+)\) · [\d,.]+ tok/s")


@pytest.fixture
def chat(user: User) -> Iterator[User]:
    """Open a new chat with the settings as they were."""
    user.new_chat()
    yield user
    user.choose(max_tokens="16", temperature="0", seed="", context_overflow="error", system="")
    user.dismiss_notices()


def test_an_empty_chat_offers_three_examples(chat: User) -> None:
    examples = chat.page.get_by_role("region", name="Example prompts").get_by_role("button")
    expect(examples).to_have_count(3)
    words = examples.first.inner_text()
    examples.first.click()
    expect(chat.questions.last.locator(".text")).to_have_text(words)
    expect(chat.answers).to_have_count(1)
    chat.answered()


def test_an_answer_streams_and_tells_its_figures(chat: User) -> None:
    chat.choose(max_tokens="400")
    chat.pause_answers()
    chat.composer.fill("Tell me something long.")
    chat.composer.press("Enter")
    expect(chat.composer).to_have_value("")
    expect(chat.composer).to_be_focused()
    expect(chat.answers.last.locator(".note")).to_contain_text("tok/s")
    expect(chat.stop).to_be_visible()
    chat.let_answers_go_on()
    expect(chat.answered().locator(".note")).to_have_text(STATS)
    expect(chat.page.locator("#announcer")).to_contain_text("Answer: ")
    expect(chat.page.locator("#contextText")).to_contain_text(f"of {CONTEXT} tokens")
    assert chat.page.locator("#contextMeter").evaluate("meter => meter.value") > 20


def test_stop_keeps_what_was_written_and_the_next_turn_works(chat: User) -> None:
    chat.choose(max_tokens="400")
    chat.pause_answers()
    chat.composer.fill("Count to a thousand.")
    chat.composer.press("Enter")
    expect(chat.answers.last.locator(".text")).to_have_text(re.compile(".{20}"))
    chat.stop.click()
    answer = chat.answered()
    expect(answer.locator(".note")).to_contain_text("Stopped")
    assert len(chat.text_of(answer)) > 20
    expect(chat.composer).to_be_focused()
    chat.choose(max_tokens="3")
    expect(chat.ask("And now?").locator(".note")).to_contain_text("3 tokens")
    expect(chat.answers).to_have_count(2)


def test_greedy_answers_repeat_and_seeds_decide_the_others(chat: User) -> None:
    first = chat.text_of(chat.ask("Hello"))
    assert chat.text_of(chat.regenerate()) == first
    texts = []
    for seed in ("1", "1", "2"):
        chat.choose(temperature="1.5", seed=seed)
        texts.append(chat.text_of(chat.regenerate()))
    assert texts[0] == texts[1] != texts[2]
    expect(chat.answers).to_have_count(1)


def test_the_system_prompt_is_the_chats_own(chat: User) -> None:
    plain = chat.text_of(chat.ask("Hello"))
    chat.choose(system="Answer like a pirate.")
    assert chat.text_of(chat.regenerate()) != plain
    chat.new_chat()
    assert chat.text_of(chat.ask("Hello")) == plain


def test_editing_a_question_goes_on_from_there(chat: User) -> None:
    chat.ask("First question")
    chat.ask("Second question")
    chat.questions.first.get_by_role("button", name="Edit").click()
    expect(chat.composer).to_have_value("First question")
    expect(chat.composer).to_be_focused()
    chat.ask("Edited question")
    expect(chat.questions).to_have_count(1)
    expect(chat.answers).to_have_count(1)
    assert chat.text_of(chat.questions.first) == "Edited question"

    chat.questions.first.get_by_role("button", name="Edit").click()
    chat.page.get_by_role("button", name="Cancel").click()
    expect(chat.composer).to_have_value("")
    expect(chat.questions).to_have_count(1)


def test_deleting_and_taking_it_back(chat: User) -> None:
    chat.ask("One")
    chat.ask("Two")
    chat.questions.first.get_by_role("button", name="Delete").click()
    expect(chat.questions).to_have_count(1)
    expect(chat.answers).to_have_count(1)
    assert chat.text_of(chat.questions.first) == "Two"
    expect(chat.composer).to_be_focused()
    chat.notices.get_by_role("button", name="Undo").click()
    expect(chat.questions).to_have_count(2)
    assert chat.text_of(chat.questions.first) == "One"
    chat.answers.last.get_by_role("button", name="Delete").click()
    expect(chat.answers).to_have_count(1)
    chat.questions.last.get_by_role("button", name="Regenerate").click()
    expect(chat.answers).to_have_count(2)
    chat.answered()


def test_copying_an_answer(chat: User) -> None:
    chat.page.evaluate("navigator.clipboard.writeText('')")
    chat.ask("Hello")
    chat.questions.last.get_by_role("button", name="Copy").click()
    expect(chat.notices).to_contain_text("Copied")
    assert chat.page.evaluate("navigator.clipboard.readText()") == "Hello"


def test_enter_while_an_input_method_composes_does_not_send(chat: User) -> None:
    chat.composer.fill("かんじ")
    for field in ("isComposing: true", "keyCode: 229"):
        event = f"new KeyboardEvent('keydown', {{key: 'Enter', bubbles: true, {field}}})"
        chat.composer.evaluate(f"composer => composer.dispatchEvent({event})")
    expect(chat.composer).to_have_value("かんじ")
    expect(chat.questions).to_have_count(0)
    chat.composer.press("Shift+Enter")
    chat.composer.press_sequentially("two")
    expect(chat.composer).to_have_value("かんじ\ntwo")
    height = chat.composer.evaluate("field => field.clientHeight")
    chat.composer.press("Shift+Enter")
    chat.composer.press("Shift+Enter")
    assert chat.composer.evaluate("field => field.clientHeight") > height
    chat.composer.fill("")


def test_a_full_context_is_told_in_words_and_can_be_gone_on_from(chat: User) -> None:
    chat.ask("Remember the first words of this chat.")
    chat.ask("word " * 60)  # the toy's tokens are bytes
    chat.composer.fill("word " * 60)
    chat.composer.press("Enter")
    refused = chat.page.locator("#tooLong")
    expect(refused).to_contain_text(f"context holds {CONTEXT}")
    expect(refused).to_contain_text("tokens too many")
    refused.get_by_role("button", name="Leave out the oldest messages").click()
    answer = chat.answered()
    expect(answer.locator(".error")).to_be_hidden()
    expect(answer.locator(".note")).to_contain_text("oldest messages left out")

    chat.choose(context_overflow="drop_oldest")
    expect(chat.ask("word " * 60).locator(".note")).to_contain_text("oldest messages left out")
    expect(chat.questions).to_have_count(4)


def test_the_page_follows_only_a_user_at_the_end(chat: User) -> None:
    chat.choose(max_tokens="120")
    scroller = chat.page.locator("#scroller")
    distance = "box => box.scrollHeight - box.scrollTop - box.clientHeight"
    chat.page.set_viewport_size({"width": 800, "height": 400})
    chat.ask("Hello")
    until(chat.page, lambda: scroller.evaluate(distance) < 48, "the end is in sight")
    chat.pause_answers()
    chat.composer.fill("Again")
    chat.composer.press("Enter")
    expect(chat.answers).to_have_count(2)
    expect(chat.answers.last.locator(".note")).to_contain_text("tok/s")
    scroller.evaluate("""box => new Promise(resolve => {
        box.addEventListener("scroll", resolve, {once: true});
        box.scrollTop = 0;
    })""")
    chat.let_answers_go_on()
    chat.answered()
    assert scroller.evaluate("box => box.scrollTop") == 0
    chat.page.set_viewport_size({"width": 1280, "height": 720})


def test_a_hidden_tab_streams_on(chat: User) -> None:
    """The text is complete even if no frame is painted."""
    frames = "globalThis.requestAnimationFrame"
    chat.page.evaluate(f"() => {{ globalThis.painted = {frames}; {frames} = () => 0; }}")
    answer = chat.ask("Hello")
    chat.page.evaluate(f"() => {{ {frames} = globalThis.painted; }}")
    expect(answer.locator(".note")).to_contain_text("tok/s")
    assert chat.text_of(answer)


def test_the_model_is_verified_on_this_machine(chat: User) -> None:
    chat.page.locator("#modelChip").click()
    dialog = chat.page.get_by_role("dialog", name="Models")
    expect(dialog).to_contain_text("processor")
    dialog.locator("#loadedName").click()
    dialog.get_by_role("button", name="Verify on this machine").click()
    dialog.get_by_text("Differences by layer").click()
    expect(dialog.get_by_role("row").nth(1)).to_be_visible()
    expect(dialog.locator("#verdict")).to_contain_text("compute")
    chat.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_the_keyboard_alone_suffices(chat: User) -> None:
    press, page = chat.page.keyboard.press, chat.page
    focused = "() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.id"

    def tab_to(name: str, key: str = "Tab") -> None:
        for _ in range(60):
            if page.evaluate(focused) == name:
                return
            press(key)
        raise AssertionError(f"{name} cannot be reached with {key}")

    page.keyboard.type("Hello")
    press("Enter")
    chat.answered()
    tab_to("Regenerate", "Shift+Tab")
    press("Enter")
    expect(chat.answers.last.locator(".which")).to_have_text("2/2")
    chat.answered()
    expect(chat.composer).to_be_focused()
    tab_to("Settings", "Shift+Tab")
    press("Enter")
    expect(page.get_by_role("dialog", name="Settings")).to_be_visible()
    press("Escape")
    expect(page.get_by_role("dialog", name="Settings")).to_be_hidden()
    assert page.evaluate(focused) == "Settings"
    tab_to("More about this chat", "Shift+Tab")
    press("Enter")
    expect(page.get_by_role("menuitem", name="Rename")).to_be_focused()
    press("Enter")
    expect(page.get_by_label("Chat name")).to_be_focused()  # its script has arrived
    page.keyboard.type("By keyboard")
    press("Enter")
    expect(page.locator("#chats")).to_contain_text("By keyboard")


def test_nothing_was_complained_about_and_nothing_left(user: User) -> None:
    """Last in the file."""
    assert user.complaints == []
    assert [url for url in user.requests if not url.startswith((user.url, "blob:"))] == []
