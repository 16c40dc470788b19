"""Answers run where they were asked; what the page tells meanwhile, and the settings."""

import re

import pytest
from playwright.sync_api import expect

from py_runtime.base.defaults import DEFAULTS
from tests.web.user import Desk, User

pytestmark = pytest.mark.browser

LONG = "What would happen to a lighthouse keeper whose lamp went out in the middle of winter?"


def send(user: User, text: str) -> None:
    user.composer.fill(text)
    user.composer.press("Enter")


def open_chat(user: User, title: str) -> None:
    user.page.locator("#chats .open", has_text=title).click()


def test_another_chat_can_be_asked_meanwhile(desk: Desk) -> None:
    user = desk.tab()
    user.page.evaluate("inpage.held = true")
    send(user, "First")
    expect(user.answers.last).to_contain_text("An answer")
    user.new_chat()
    expect(user.stop).to_be_hidden()
    send(user, "Second")
    expect(user.answers.last.locator(".note")).to_have_text("Waiting for the answer in “First”")
    marks = user.page.locator("#chats .mark:visible")
    expect(marks).to_have_count(2)
    expect(user.page.get_by_role("img", name="Being answered")).to_have_count(1)
    expect(user.page.get_by_role("img", name="Waiting for its answer")).to_have_count(1)
    assert user.faults_of_access() == []
    send(user, "Third")
    expect(user.answers).to_have_count(2)
    user.stop.click()  # the one on screen that comes first
    expect(user.answers.first.locator(".note")).to_have_text("Stopped")
    open_chat(user, "First")
    expect(user.answers.last).to_contain_text("An answer")
    expect(user.stop).to_be_visible()
    user.page.evaluate("inpage.held = false")
    expect(user.answers.last).to_contain_text("An answer to First")
    expect(user.stop).to_be_hidden()
    open_chat(user, "Second")
    expect(user.answers.last).to_contain_text("An answer to Third")
    expect(marks).to_have_count(0)
    assert user.complaints == []


BREAK_PAINTING = """async () => {
    const {answers: [{painted}]} = await import("/ui/answers.js");
    painted.grow = painted.finish = () => { throw new Error("broken on purpose"); };
    inpage.held = false;
}"""


def test_an_answer_that_cannot_be_painted_keeps_no_other_waiting(desk: Desk) -> None:
    user = desk.tab()
    user.page.evaluate("inpage.held = true")
    send(user, "First")
    expect(user.answers.last).to_contain_text("An answer")
    user.new_chat()
    send(user, "Second")
    expect(user.answers.last.locator(".note")).to_have_text("Waiting for the answer in “First”")
    user.page.evaluate(BREAK_PAINTING)
    expect(user.answers.last).to_contain_text("An answer to Second")
    open_chat(user, "First")
    expect(user.answers.last).to_contain_text("An answer to First")
    user.ask("Third")
    expect(user.answers.last).to_contain_text("An answer to Third")
    assert set(user.complaints) == {"broken on purpose"}


def test_escape_stops_an_answer_then_an_edit_then_closes_a_dialog(desk: Desk) -> None:
    user = desk.tab()
    user.ask("Before")
    user.questions.first.get_by_role("button", name="Edit").click()
    expect(user.page.locator("#editing")).to_be_visible()
    user.page.evaluate("inpage.held = true")
    user.page.locator("header [data-opens=settings]").click()
    user.page.evaluate("document.querySelector('#composer').requestSubmit()")
    expect(user.stop).to_be_visible()
    dialog = user.page.get_by_role("dialog", name="Settings")
    user.page.keyboard.press("Escape")
    expect(user.stop).to_be_hidden()
    expect(dialog).to_be_visible()
    user.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    user.page.evaluate("inpage.held = false")
    user.questions.first.get_by_role("button", name="Edit").click()
    expect(user.page.locator("#editing")).to_be_visible()
    user.page.keyboard.press("Escape")
    expect(user.page.locator("#editing")).to_be_hidden()
    expect(user.composer).to_have_value("")


def test_a_title_ends_with_a_word_and_the_tab_has_it(desk: Desk) -> None:
    user = desk.tab()
    expect(user.page).to_have_title("inpage")
    user.ask(LONG)
    title = "What would happen to a lighthouse keeper whose lamp went out…"
    expect(user.page.locator("#chats .open")).to_have_text([title])
    expect(user.page).to_have_title(f"{title} · inpage")


def test_notices_fade_the_newest_is_on_top_and_faults_stay(desk: Desk) -> None:
    user = desk.tab()
    tell = "([text, options]) => import('/ui/notices.js').then(({notify}) => notify(text, options))"
    patience = "ms => import('/ui/notices.js').then(({patience}) => { patience.notice = ms; })"
    user.page.evaluate(patience, 10**9)
    for text, options in (("a fault", {"stays": True}), ("news", {}), ("more news", {})):
        user.page.evaluate(tell, [text, options])
    expect(user.notices.locator(".words")).to_have_text(["more news", "news", "a fault"])
    below = user.page.locator("#scroller").bounding_box()
    lowest = user.notices.locator(".notice").last.bounding_box()
    assert below
    assert lowest
    assert lowest["y"] + lowest["height"] <= below["y"], "they cover nothing"
    user.dismiss_notices()
    user.page.mouse.move(0, 0)  # what the pointer is on is being read
    user.page.evaluate(patience, 1)
    user.page.evaluate(tell, ["a fault", {"stays": True}])
    user.page.evaluate(tell, ["news", {}])
    expect(user.notices.locator(".words")).to_have_text(["a fault"])


def test_the_context_is_counted_while_an_answer_grows(desk: Desk) -> None:
    user = desk.tab()
    user.page.evaluate("""() => {
        const create = inpage.chat.completions.create;
        inpage.chat.completions.create = async function* (request) {
            yield {choices: [], progress: {prefilled: 900, total: 900}};
            yield* create(request);
        };
        inpage.held = true;
    }""")
    send(user, "Long")
    text = user.page.locator("#contextText")
    expect(text).to_have_text("Context: 901 of 1,000 tokens, nearly full")
    user.stop.click()
    expect(text).to_have_text("Context: 1 of 1,000 tokens")


def test_a_first_answer_says_what_it_waits_for(desk: Desk) -> None:
    user = desk.tab()
    user.page.evaluate("""() => {
        inpage.chat.completions.create = async function* ({signal}) {
            for (const progress of inpage.told) {
                yield {choices: [], progress};
                await new Promise(resolve => { inpage.goOn = resolve; });
            }
        };
        inpage.told = [
            {prefilled: 0, total: 0, compiling: true},
            {prefilled: 8, total: 12},
        ];
    }""")
    send(user, "Hello")
    note = user.answers.last.locator(".note")
    expect(note).to_have_text("Compiling for your GPU (first time only)…")
    user.page.evaluate("inpage.goOn()")
    expect(note).to_have_text("Reading your message: 8 of 12 tokens")
    user.page.evaluate("inpage.goOn()")
    expect(user.stop).to_be_hidden()


def test_verifying_tells_how_far_it_is_and_can_be_cancelled(desk: Desk) -> None:
    user = desk.tab()
    user.page.evaluate("""() => {
        inpage.verify = ({signal, onProgress}) => new Promise((resolve, reject) => {
            inpage.verified = resolve;
            signal.addEventListener("abort", () => reject(new Error("aborted")));
            onProgress({messages: [{code: "verifying_layers", facts: {share: 0.25}}]});
        });
    }""")
    user.page.locator("#modelChip").click()
    panel = user.page.get_by_role("dialog", name="Models")
    panel.locator("#loadedName").click()
    verify = panel.get_by_role("button", name="Verify on this machine")
    verdict = panel.locator("#verdict")
    sign = "one => getComputedStyle(one, '::before').content"
    verify.click()
    expect(verdict).to_have_text("Verifying layers: 25 %")
    panel.get_by_role("button", name="Cancel").click()
    expect(verdict).to_have_text("Cancelled.")
    for is_right, shown in (("true", "✓"), ("false", "✗")):
        verify.click()
        expect(verdict).to_have_text("Verifying layers: 25 %")
        messages = "[{code: 'device_recovered', facts: {}}]"
        user.page.evaluate(f"inpage.verified({{ok: {is_right}, messages: {messages}, table: ''}})")
        expect(verdict).to_have_text("The device is back; nothing was lost.")
        assert shown in verdict.evaluate(sign)
    assert user.complaints == []


# ---- settings


def test_a_value_that_cannot_be_is_refused_where_it_is_typed(desk: Desk) -> None:
    user = desk.tab()
    user.choose(temperature="0.7", top_k="40")
    user.page.locator("header [data-opens=settings]").click()
    field = user.page.locator("[name=temperature]")
    field.fill("5")
    label = user.page.locator("label", has=field)
    expect(label.get_by_role("alert")).to_contain_text("2")
    expect(field).to_have_attribute("aria-invalid", "true")
    assert user.faults_of_access() == []
    dialog = user.page.get_by_role("dialog", name="Settings")
    dialog.get_by_role("button", name="Done").click()
    expect(field).to_be_focused()
    expect(dialog).to_be_visible()
    user.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    user.ask("Hello")
    sent = user.page.evaluate("inpage.asked")
    assert (sent["temperature"], sent["top_k"]) == (0.7, 40)
    user.page.reload()
    desk.ready(user)
    expect(field).to_have_value("0.7")


def test_defaults_are_the_engines(desk: Desk) -> None:
    """A form without changes sends nothing; it shows what holds then, and Reset returns to it."""
    user = desk.tab()
    user.ask("Hello")
    assert not user.page.evaluate("inpage.asked").keys() & {*DEFAULTS, "max_tokens"}
    user.choose(temperature="0.7", max_tokens="5")
    user.page.locator("header [data-opens=settings]").click()
    user.page.get_by_role("button", name="Reset").click()
    user.page.get_by_role("button", name="Done").click()
    user.ask("Hello")
    sent = user.page.evaluate("inpage.asked")
    assert {name: sent[name] for name in DEFAULTS} == DEFAULTS
    assert "max_tokens" not in sent


def test_presets_and_stop_strings(desk: Desk) -> None:
    user = desk.tab()
    user.page.locator("header [data-opens=settings]").click()
    presets = user.page.get_by_role("group", name="Presets").get_by_role("button")
    expect(presets).to_have_text(["Precise", "Balanced", "Creative"])
    expect(presets.nth(1)).to_have_attribute("aria-pressed", "true")
    presets.first.click()
    expect(presets.first).to_have_attribute("aria-pressed", "true")
    expect(presets.nth(1)).to_have_attribute("aria-pressed", "false")
    expect(user.page.locator("[name=temperature]")).to_have_value("0")
    stop = user.page.get_by_label("Stop strings")
    user.page.get_by_text("Advanced", exact=True).click()
    stop.fill("\n".join(["x"] * 17))
    expect(user.page.locator("label", has=stop).get_by_role("alert")).to_contain_text(
        "at most 16 stop strings"
    )
    stop.fill("END\nthe end")
    user.page.get_by_role("button", name="Done").click()
    user.ask("Hello")
    sent = user.page.evaluate("inpage.asked")
    assert sent["stop"] == ["END", "the end"]
    assert sent["temperature"] == 0
    user.page.reload()
    desk.ready(user)
    expect(stop).to_have_value(re.compile("END\nthe end"))


def test_system_prompts_are_kept_and_taken(desk: Desk) -> None:
    """Every chat can take them; what stands in storage may be anything."""
    user = desk.tab(script='localStorage.inpagePrompts ||= \'{"version": 1, "texts": [7, ""]}\'')
    opener = user.page.locator("header [data-opens=settings]")
    opener.click()
    prompts = user.page.get_by_label("Choose a saved prompt")
    keep = user.page.get_by_role("button", name="Save prompt")
    forget = user.page.get_by_role("button", name="Delete prompt")
    system = user.page.get_by_label("System prompt for this chat")
    expect(prompts.locator("optgroup")).to_have_count(1)
    expect(keep).to_be_hidden()
    system.fill(" Talk like a pirate. ")
    for language in ("de", "en"):  # shows the chat anew; nobody has left the field
        user.page.locator("#language").select_option(language)
        expect(user.page.locator("html")).to_have_attribute("lang", language)
        expect(user.page.locator("#system")).to_have_value("Talk like a pirate.")
    keep.click()
    expect(prompts).to_have_value("Talk like a pirate.")
    expect(keep).to_be_hidden()
    assert user.faults_of_access() == []
    user.page.reload()
    desk.ready(user)
    opener.click()
    expect(system).to_have_value("")
    prompts.select_option("Talk like a pirate.")
    expect(system).to_have_value("Talk like a pirate.")
    user.page.get_by_role("button", name="Done").click()
    user.ask("Hello")
    first = user.page.evaluate("inpage.asked.messages[0]")
    assert first == {"role": "system", "content": "Talk like a pirate."}
    opener.click()
    forget.click()
    expect(prompts.locator("optgroup")).to_have_count(1)
    expect(forget).to_be_hidden()
    expect(keep).to_be_visible()  # the chat still has it
    prompts.select_option(index=1)
    expect(prompts.locator("optgroup").first.locator("option")).to_have_text(
        ["Talk like a pirate."]
    )  # which nobody had kept
    user.page.keyboard.press("Escape")
    rules = user.page.get_by_role("button", name="System prompt: Answer in plain words")
    expect(rules).to_be_visible()
    user.ask("Hello")
    assert "plain words" in user.page.evaluate("inpage.asked.messages[0].content")
    assert user.complaints == []


def test_at_200_percent_the_button_is_in_sight(desk: Desk) -> None:
    user = desk.tab()
    user.page.evaluate("document.body.dataset.model = 'none'")
    user.page.set_viewport_size({"width": 640, "height": 360})
    expect(user.page.locator("#load")).to_be_in_viewport(ratio=1)
