"""Tokens of messages: certainty, other choices, versions side by side, and why an answer is so."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.web.user import Desk, User, chat_of, until
from tools.files import ROOT

pytestmark = pytest.mark.browser

SHOWN = """async () => {
    const {shown} = await import("/ui/chats.js");
    return (await import("/ui/chats.js")).pathOf(shown);
}"""
RUN_CODE = """async () => {
    const {shown} = await import("/ui/chats.js");
    const {pathOf} = await import("/ui/chats.js");
    const {codeOf} = await import("/ui/tokens/why.js");
    return inpage.python(`${codeOf(shown, pathOf(shown).at(-1))}tokens`);
}"""
IDS = """async tokens => (await import("/ui/answers.js")).unpacked(tokens)"""


@pytest.fixture(scope="module")
def settled(fresh: User) -> User:
    """Load the toy; its answers are short and sampled."""
    fresh.load()
    fresh.choose(max_tokens="12", temperature="0.9", top_k="5", top_p="0.8", seed="7")
    return fresh


@pytest.fixture
def answered(settled: User) -> Iterator[User]:
    """Ask one question in a chat of its own."""
    settled.new_chat()
    settled.ask("the quick brown fox")
    yield settled
    assert settled.complaints == []


def message(user: User, at: int = -1) -> dict[str, Any]:
    found: dict[str, Any] = user.page.evaluate(SHOWN)[at]
    return found


def ids_of(user: User, at: int = -1) -> list[int]:
    found: list[int] = user.page.evaluate(IDS, message(user, at)["tokens"])
    return found


def show_certainty(user: User) -> Locator:
    """Switch it on for the last answer and wait for its tokens."""
    user.answers.last.get_by_role("button", name="Show certainty").click()
    return shown_tokens(user.answers.last)


def shown_tokens(article: Locator) -> Locator:
    tokens = article.locator(".tokens .tok")
    expect(tokens.first).to_be_visible()
    return tokens


def choices(user: User) -> Locator:
    return user.page.get_by_role("dialog", name="What could stand here")


def open_menu(user: User, item: str) -> Locator:
    user.answers.last.get_by_role("button", name="More").click()
    user.page.get_by_role("menuitem", name=item).click()
    dialog = user.page.get_by_role("dialog", name=item)
    expect(dialog).to_be_visible()
    return dialog


def test_certainty_tints_each_token_and_goes_back_to_the_text(answered: User) -> None:
    text = answered.text_of(answered.answers.last)
    tokens = show_certainty(answered)
    expect(tokens).to_have_count(len(ids_of(answered)))
    assert set(tokens.evaluate_all("all => all.map(one => one.dataset.level)")) <= set("12345")
    view = answered.answers.last
    expect(view.get_by_role("list", name="Probability of a token")).to_contain_text("below 5 %")
    expect(view.locator(".facts")).to_contain_text("perplexity")
    expect(view.locator(".facts")).not_to_contain_text("about")
    expect(view.locator("> .text")).to_be_hidden()
    button = view.get_by_role("button", name="Show certainty")
    expect(button).to_have_attribute("aria-pressed", "true")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    expect(tokens).to_have_count(0)
    assert answered.text_of(answered.answers.last) == text


def test_a_token_shows_what_else_could_stand_there_and_what_was_cut(answered: User) -> None:
    show_certainty(answered).nth(3).hover()
    box = choices(answered)
    expect(box).to_be_visible()
    rows = box.locator(".choice-row")
    until(answered.page, lambda: rows.count() in (10, 11), "the ten best, and the token itself")
    expect(box.locator("[data-here]")).to_have_count(1)
    expect(box.locator("[data-cut]").first).to_contain_text(re.compile("top [kp]"))
    assert box.locator("[data-cut]").count() >= 5, "top k leaves five"
    expect(box.locator(".facts")).to_contain_text(re.compile(r"Rank \d+ of \d+ · surprise .* bits"))
    answered.page.mouse.move(2, 2)
    expect(box).to_be_hidden()


def test_an_alternative_continues_as_a_version_with_the_same_beginning(answered: User) -> None:
    before = ids_of(answered)
    settings = message(answered)["settings"]
    show_certainty(answered).nth(4).click()
    offered = choices(answered).get_by_role("button", name=re.compile("^Continue with"))
    offered.first.click()
    expect(answered.answers.last.locator(".which")).to_have_text("2/2")
    answered.answered()
    after = ids_of(answered)
    assert after[:4] == before[:4]
    assert after[4] != before[4]
    assert len(after) == 5 + 12, "it goes on as long as the first one could"
    assert message(answered)["settings"] == settings
    tokens = shown_tokens(answered.answers.last)
    expect(tokens).to_have_count(len(after))


def test_versions_are_compared_side_by_side(answered: User) -> None:
    show_certainty(answered).nth(4).click()
    choices(answered).get_by_role("button", name=re.compile("^Continue with")).first.click()
    answered.answered()
    dialog = open_menu(answered, "Compare versions")
    facts = dialog.locator("#compareFacts")
    expect(facts).to_contain_text("4 tokens at the beginning are the same")
    expect(dialog.locator("mark.first")).to_have_count(2)
    assert answered.faults_of_access() == []
    dialog.locator("#compareRight").select_option("0")
    expect(facts).to_have_text("Both versions are the same.")
    answered.page.keyboard.press("Escape")
    expect(answered.answers.last.get_by_role("button", name="More")).to_be_focused()


def test_the_sparkline_leads_to_a_token(answered: User) -> None:
    tokens = show_certainty(answered)
    spark = answered.answers.last.get_by_role("slider", name="Surprise along the text")
    box = spark.bounding_box()
    assert box
    spark.click(position={"x": box["width"] - 2, "y": 10})
    expect(tokens.last).to_be_focused()
    expect(spark).to_have_attribute("aria-valuenow", str(tokens.count()))
    spark.focus()
    answered.page.keyboard.press("Home")
    answered.page.keyboard.press("ArrowRight")
    expect(spark).to_have_attribute("aria-valuetext", re.compile("bits"))
    answered.page.keyboard.press("Enter")
    expect(tokens.nth(1)).to_be_focused()


def test_the_keyboard_reads_tokens_and_chooses(answered: User) -> None:
    tokens = show_certainty(answered)
    keys = answered.page.keyboard
    tokens.first.focus()
    keys.press("ArrowRight")
    keys.press("ArrowRight")
    expect(tokens.nth(2)).to_be_focused()
    expect(tokens.nth(2)).to_have_attribute("aria-label", re.compile(r"%, rank \d+"))
    expect(answered.page.locator(".tokens .tok[tabindex='0']")).to_have_count(1)
    assert answered.faults_of_access() == []
    keys.press("Enter")
    expect(choices(answered).get_by_role("button").nth(1)).to_be_focused()
    keys.press("ArrowDown")
    keys.press("Escape")
    expect(choices(answered)).to_be_hidden()
    expect(tokens.nth(2)).to_be_focused()
    keys.press("Enter")
    keys.press("Enter")
    expect(answered.answers.last.locator(".which")).to_have_text("2/2")
    answered.answered()


def test_how_expected_the_users_own_words_are(answered: User) -> None:
    question = answered.questions.last
    question.get_by_role("button", name="How expected is this?").click()
    tokens = shown_tokens(question)
    words = "the quick brown fox"
    until(answered.page, lambda: "".join(tokens.all_inner_texts()) == words, "all of them")
    tokens.nth(2).hover()
    expect(choices(answered).locator(".choice-row").first).to_be_disabled()
    assert answered.faults_of_access() == []


def test_certainty_stays_after_a_reload_with_the_same_tokens(answered: User) -> None:
    show_certainty(answered)
    ids = ids_of(answered)
    until(answered.page, lambda: any(
        one.get("certain") for chat in answered.records() for one in chat["messages"]
    ), "kept")  # fmt: skip
    answered.page.reload()
    answered.has_opened()
    answered.has_loaded()
    tokens = shown_tokens(answered.answers.last)
    expect(tokens).to_have_count(len(ids))
    expect(answered.answers.last.locator(".facts")).not_to_contain_text("about")
    assert ids_of(answered) == ids


def test_tokens_go_with_exported_chats_and_older_ones_are_about(answered: User) -> None:
    ids = ids_of(answered)
    exported = answered.exported("Export").read_text()
    answered.import_text(exported)
    expect(answered.notices).to_contain_text("imported")
    assert ids_of(answered) == ids
    show_certainty(answered)
    expect(answered.answers.last.locator(".facts")).not_to_contain_text("about")
    older = json.loads(exported)
    for one in older["chats"][0]["messages"]:
        for name in ("tokens", "made", "settings"):
            one.pop(name, None)
    answered.import_text(json.dumps(older))
    answered.dismiss_notices()
    answered.answers.last.get_by_role("button", name="Show certainty").click()
    shown_tokens(answered.answers.last)
    expect(answered.answers.last.locator(".facts")).to_contain_text("approximate: its tokens")


def test_new_answers_show_it_where_the_user_wants_that(answered: User) -> None:
    answered.choose(certainty="on")
    answered.ask("the lazy dog")
    expect(shown_tokens(answered.answers.last)).to_have_count(len(ids_of(answered)))
    answered.choose(certainty="")
    answered.ask("the lazy cat")
    expect(answered.answers.last.locator(".certainty")).to_have_count(0)


def test_why_this_answer(answered: User) -> None:
    answered.ask("and then?")
    dialog = open_menu(answered, "Why this answer?")
    facts = dialog.locator("#whyFacts")
    expect(facts).to_contain_text("It reached the limit of 12 tokens.")
    expect(facts).to_contain_text("temperature 0.9 · top p 0.8 · top k 5 · repetition penalty")
    for text in ("Toy", "processor, ", "kernels: cpu", "from the cache", "tok/s"):
        expect(facts).to_contain_text(text)
    expect(facts.locator("dt:text-is('Seed') + dd")).to_have_text("7")
    prompt = dialog.locator("#whyPrompt")
    count = message(answered)["made"]["prompt_tokens"]
    expect(prompt.locator(".tok")).to_have_count(count)
    cached = message(answered)["made"]["cached_tokens"]
    assert 0 < cached < count
    expect(prompt.locator("[data-cached]")).to_have_count(cached)
    asked = "".join(prompt.locator("[data-part=user]").all_inner_texts())
    assert asked == "the quick brown foxand then?"
    expect(prompt.locator("[data-part=special]").first).to_be_visible()
    assert answered.faults_of_access() == []
    dialog.get_by_role("button", name="Open in notebook").click()
    expect(answered.page.get_by_role("textbox", name="Code").last).to_contain_text("seed=7,")
    answered.page.get_by_role("button", name="Close the panel").click()


def test_the_notebooks_code_writes_the_same_tokens(answered: User) -> None:
    """The second answer is one that goes on from a token of the first, and shows its own."""
    show_certainty(answered)
    for _ in range(2):
        begun = message(answered)["made"]["begun"]
        assert answered.page.evaluate(RUN_CODE) == ids_of(answered)[begun:]
        shown_tokens(answered.answers.last).nth(3).click()
        choices(answered).get_by_role("button", name=re.compile("^Continue with")).last.click()
        answered.answered()


LOOKS: Any = (("light", 1280), ("light", 360), ("dark", 360))


def test_everybody_can_use_it_and_it_fits_a_phone(answered: User) -> None:
    page = answered.page
    show_certainty(answered)
    for scheme, width in LOOKS:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 740})
        answered.answers.last.locator(".tokens .tok").nth(2).click()
        expect(choices(answered)).to_be_visible()
        assert answered.faults_of_access() == []
        assert not page.evaluate("document.scrollingElement.scrollWidth > innerWidth")
        edges = choices(answered).bounding_box()
        assert edges
        assert 0 <= edges["x"] <= width - edges["width"]
        page.keyboard.press("Escape")
        open_menu(answered, "Why this answer?")
        assert answered.faults_of_access() == []
        page.keyboard.press("Escape")
    page.set_viewport_size({"width": 1280, "height": 740})
    page.emulate_media(color_scheme=None)


# ---- without the engine

LONG = """() => {
    const tokens = Array.from({length: 4000}, (_, at) => ({
        id: at, text: at % 40 === 39 ? "\\n" : ` w${at}`, logprob: -(at % 7), rank: 1 + at % 7,
        entropy: 1, drawn: 0.5, cut: null, best: [],
    }));
    inpage.glass = async () =>
        ({tokens, context_tokens: 5, about: true, vocabulary: 100, model: "Stand-in"});
    globalThis.longest = 0;
    new PerformanceObserver(list => {
        for (const {duration} of list.getEntries()) longest = Math.max(longest, duration);
    }).observe({type: "longtask"});
}"""


def test_thousands_of_tokens_come_in_slices(desk: Desk) -> None:
    user = desk.tab()
    user.import_chats(chat_of("Long?", "w " * 4000))
    user.page.evaluate(LONG)
    user.answers.last.get_by_role("button", name="Show certainty").click()
    tokens = user.answers.last.locator(".tokens .tok")
    expect(tokens).to_have_count(4000)
    user.page.mouse.move(0, 0)  # it would look at a token that comes to lie below it
    assert user.answers.last.locator(".tokens p").count() == 100, "a block for each line"
    user.answers.last.get_by_role("slider").press("End")
    user.answers.last.get_by_role("slider").press("Enter")
    expect(tokens.last).to_be_in_viewport()
    assert user.complaints == []


def test_it_says_what_it_waits_for_and_what_went_wrong(desk: Desk) -> None:
    user = desk.tab()
    user.import_chats(chat_of("Why?", "Because."))
    user.page.evaluate("""() => {
        inpage.model = inpage.loaded;
        inpage.loaded = null;
        inpage.glass = async () => { throw new Error("the engine is out of order"); };
    }""")
    user.answers.last.get_by_role("button", name="Show certainty").click()
    facts = user.answers.last.locator(".certainty .facts")
    expect(facts).to_have_text("Certainty is shown once a model is loaded.")
    user.page.evaluate("""() => {
        inpage.loaded = inpage.model;
        dispatchEvent(new Event("modelchange"));
    }""")
    expect(facts).to_contain_text("could not be scored: the engine is out of order.")
    expect(user.answers.last.locator("> .text")).to_be_visible()


@pytest.mark.model
@pytest.mark.thorough
def test_the_default_model_explains_itself(browser: Browser, site_url: str) -> None:
    context = browser.new_context()
    user = User(context.new_page(), f"{site_url}?device=cpu")
    user.open()
    user.load()
    user.choose(max_tokens="10", temperature="0")
    user.ask("What is the capital of France?")
    tokens = show_certainty(user)
    expect(tokens).to_have_count(len(ids_of(user)))
    tokens.nth(1).hover()
    expect(choices(user).locator("[data-cut]").first).to_contain_text("temperature")
    user.page.mouse.move(2, 2)
    expect(choices(user)).to_be_hidden()
    open_menu(user, "Why this answer?")
    expect(user.page.locator("#whyPrompt [data-part=user]").first).to_be_visible()
    context.close()


def test_nothing_of_it_loads_before_it_is_used() -> None:
    scripts = ("answers", "conversation", "message_actions", "settings/settings", "chat_storage")
    for script in scripts:
        source = (ROOT / "web" / "ui" / f"{script}.js").read_text()
        assert not re.search(r"^import .*(token|certainty|why|compare)", source, re.MULTILINE)
