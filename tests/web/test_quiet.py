"""Less noise around messages; footnotes and headings in them; who wrote them, or could."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.web.user import Desk, User, chat_of, until

pytestmark = pytest.mark.browser

ANSWER = """`x` مرحبا بالعالم

# One

### Two levels below

A claim[^1].

[^1]: Its *source*.

```text
[^1]: is no footnote in code
```
"""
# What an engine has that can do more: another model is stored, and the Hub may be asked.
MORE = """async () => {
    Object.assign(inpage.loaded, {size: 1e8, path: "models/a"});
    Object.defineProperty(inpage, "ready", {value: Promise.resolve({hub: "https://hub.example"})});
    inpage.stored = async () => [];
    inpage.models = async () => ["a", "b"].map((name) => (
        {name, path: `models/${name}`, stored: true, messages: [], size: 1e8}));
    inpage.load = async (path) => {
        inpage.loaded = {...inpage.loaded, name: path.at(-1), path};
        return {};
    };
    await (await import("/ui/models/models.js")).listModels();
    const {create} = inpage.chat.completions;
    inpage.chat.completions.create = async function* (request) {
        for await (const chunk of create(request)) {
            if (chunk.usage) chunk.usage.extra = {decode_tokens_per_s: 200};
            yield chunk;
        }
    };
}"""


@pytest.fixture(scope="module")
def tab(browser: Browser, toy_site_url: str) -> Iterator[User]:
    desk = Desk(browser, toy_site_url)
    user = desk.tab()
    yield user
    assert user.complaints == []
    desk.context.close()


def test_footnotes_lead_to_their_text_and_back(tab: User) -> None:
    tab.import_chats(chat_of("Explain", ANSWER))
    text = tab.answers.last.locator(".text")
    expect(text.locator("p[data-footnote]")).to_contain_text("Its source.")
    expect(text.locator("pre")).to_contain_text("[^1]: is no footnote")
    there = text.get_by_role("button", name="Footnote 1: back to the text")
    text.get_by_role("button", name="Footnote 1", exact=True).click()
    expect(there).to_be_focused()
    there.click()
    expect(text.get_by_role("button", name="Footnote 1", exact=True)).to_be_focused()


def test_headings_skip_no_level_and_code_does_not_turn_a_paragraph(tab: User) -> None:
    text = tab.answers.last.locator(".text")
    assert text.locator("h3, h4, h5, h6").evaluate_all(
        "all => all.map(({localName}) => localName)"
    ) == ["h3", "h4"]
    paragraph = text.locator("p").first
    assert paragraph.evaluate("each => getComputedStyle(each).direction") == "rtl"
    assert tab.faults_of_access() == []


def test_a_phone_shows_the_chats_name_above_its_model(tab: User) -> None:
    tab.page.set_viewport_size({"width": 390, "height": 844})
    name = tab.page.get_by_label("Chat name").bounding_box()
    model = tab.page.locator("#modelChip").bounding_box()
    assert name
    assert model
    assert name["width"] > 200
    assert name["y"] + name["height"] <= model["y"]
    expect(tab.page.get_by_role("heading", level=1)).to_have_text("inpage")
    tab.page.set_viewport_size({"width": 1280, "height": 720})


def test_icons_and_figures_come_when_they_are_wanted(tab: User) -> None:
    answer = tab.ask("Hello")
    tab.page.mouse.move(0, 0)
    copy = answer.get_by_role("button", name="Copy", exact=True)
    opacity = "button => getComputedStyle(button).opacity"
    assert copy.evaluate(opacity) == "0"
    copy.focus()
    assert copy.evaluate(opacity) == "1"
    expect(answer.locator(".by")).to_have_text("Stand-in")
    figures = answer.get_by_text("2 tokens")
    expect(figures).to_be_hidden()
    answer.get_by_role("button", name="Statistics").click()
    expect(figures).to_be_visible()
    bubble = tab.questions.last.locator(".text")
    assert bubble.evaluate("({offsetWidth}) => offsetWidth") < 120, "as wide as its text"


def test_an_empty_answer_has_nothing_to_copy(tab: User) -> None:
    tab.import_chats(chat_of("Say nothing", ""))
    expect(tab.answers.last.get_by_role("button", name="Delete")).to_be_visible()
    expect(tab.answers.last.get_by_role("button", name="Copy", exact=True)).to_be_hidden()


def test_where_the_context_is_full_an_answer_goes_on_without_the_oldest(tab: User) -> None:
    tab.page.evaluate("""() => {
        const {completions} = inpage.chat;
        const {create} = completions;
        completions.create = async function* (request) {
            inpage.lastAsked = request;
            for await (const chunk of create(request)) {
                if (chunk.choices[0]?.finish_reason) chunk.choices[0].finish_reason = "length";
                const code = inpage.isFull ? "context_full" : "answer_cut";
                if (chunk.usage) chunk.usage.messages = [{code, facts: {}}];
                yield chunk;
            }
        };
    }""")
    answer = tab.ask("A long one")
    expect(answer.locator(".note")).to_have_text("Maximum length reached")
    expect(answer.get_by_role("button", name="Continue", exact=True)).to_be_visible()
    forget = answer.get_by_role("button", name="Forget the oldest text and continue")
    expect(forget).to_be_hidden()
    tab.page.evaluate("inpage.isFull = true")
    answer = tab.ask("A longer one")
    expect(answer.locator(".note")).to_have_text("Context full")
    expect(answer.get_by_role("button", name="Continue", exact=True)).to_be_hidden()
    forget = answer.get_by_role("button", name="Forget the oldest text and continue")
    forget.click()
    asked = "inpage.lastAsked.context_overflow"
    until(tab.page, lambda: tab.page.evaluate(asked) == "slide", "the answer goes on")
    assert tab.page.evaluate("inpage.lastAsked.continue_final_message")
    expect(forget).to_be_visible()


def test_any_answer_can_be_written_anew_by_another_model(desk: Desk) -> None:
    user = desk.tab()
    user.page.evaluate(MORE)
    user.ask("First")
    user.ask("Second")
    first = user.answers.first
    first.get_by_role("button", name="More").click()
    user.page.get_by_role("menuitem", name="Regenerate with b").click()
    expect(user.answers).to_have_count(1)
    expect(user.answers.first.locator(".which")).to_have_text("2/2")
    expect(user.answers.first.locator(".by")).to_have_text("b")
    assert user.complaints == []


def test_two_models_are_compared_on_a_question(desk: Desk) -> None:
    """One after the other: memory need not suffice for both."""
    user = desk.tab()
    user.page.evaluate(MORE)
    user.page.evaluate("inpage.loaded.name = 'a'")
    answer = user.ask("First")
    answer.get_by_role("button", name="More").click()
    user.page.get_by_role("menuitem", name="Compare with b").click()
    compared = user.page.get_by_role("dialog", name="Compare versions")
    expect(compared).to_be_visible()
    chosen = compared.locator("option:checked")
    expect(chosen).to_contain_text(["1 · a · ", "2 · b · "])
    assert user.faults_of_access() == []
    user.page.keyboard.press("Escape")
    expect(user.answers.last.locator(".which")).to_have_text("2/2")
    assert user.complaints == []


def test_a_better_model_is_suggested_until_nobody_wants_that(desk: Desk) -> None:
    user = desk.tab()
    user.page.evaluate(MORE)
    user.ask("First")
    suggestion = user.notices.get_by_text("Your graphics card can run Llama 3.2 3B (2.0 GB)")
    expect(suggestion).to_be_visible()
    assert user.faults_of_access() == []
    user.notices.get_by_role("button", name="Don’t suggest models").click()
    expect(suggestion).to_be_hidden()
    user.page.locator("#modelChip").click()
    expect(user.page.locator("#modelRows")).to_contain_text("fits · about 200 tok/s")
    expect(user.page.locator("#suggested")).to_be_hidden()
    user.page.keyboard.press("Escape")
    user.page.reload()
    desk.ready(user)
    user.page.evaluate(MORE)
    user.ask("Again")
    expect(user.answers).to_have_count(2)
    expect(suggestion).to_have_count(0)


def test_a_suggested_model_is_looked_up_on_the_hub(desk: Desk) -> None:
    user = desk.tab()
    user.page.evaluate(MORE)
    user.page.evaluate("() => { inpage.hubFiles = async (where) => { throw new Error(where); }; }")
    user.ask("First")
    user.notices.get_by_role("button", name="Show").click()
    panel = user.page.get_by_role("dialog", name="Models")
    expect(panel.locator("#hubError")).to_contain_text("Llama-3.2-3B")
    assert user.complaints == []


def test_a_hub_that_cannot_be_reached_is_tried_again(desk: Desk) -> None:
    user = desk.tab()
    user.page.evaluate(MORE)
    user.page.evaluate("""() => {
        inpage.hubFiles = async () => {
            if (inpage.isOnline) return {name: "o/n", commit: "c0ffee", licence: "MIT", files: []};
            throw Object.assign(new Error("https://hub.example did not arrive"),
                {code: "network_error"});
        };
    }""")
    user.page.locator("#modelChip").click()
    user.page.get_by_label("Search the Hugging Face Hub").fill("o/n")
    user.page.get_by_role("button", name="Search").click()
    fault = user.page.get_by_text("The Hugging Face Hub cannot be reached. Are you online?")
    expect(fault).to_be_visible()
    user.page.evaluate("inpage.isOnline = true")
    user.page.get_by_role("button", name="Retry").click()
    expect(fault).to_be_hidden()
    expect(user.page.get_by_role("button", name="Retry")).to_be_hidden()
    assert user.complaints == []


def test_a_printed_chat_is_all_of_it_and_nothing_else(tab: User) -> None:
    tab.import_chats(chat_of(*["Question", "Answer. " * 400] * 20, "Last", "The end of it."))
    expect(tab.questions).to_have_count(21)
    tab.page.emulate_media(media="print", color_scheme="dark")
    for hidden in ("#sidebar", "#composer", ".actions > .icon", "#modelChip"):
        expect(tab.page.locator(hidden).first).to_be_hidden()
    expect(tab.page.get_by_label("Chat name")).to_be_visible()
    ink, end = "() => getComputedStyle(document.body).color", "The end of it."
    assert tab.page.evaluate(ink) == "rgb(35, 38, 45)", "dark on light"
    bottom = tab.answers.last.get_by_text(end).bounding_box()
    assert bottom
    assert tab.page.evaluate("document.documentElement.scrollHeight") >= bottom["y"]
    pages = tab.page.pdf(format="A4").count(b"/Type /Page\n")
    assert pages >= 10, "nothing is cut off below the first screen"
    tab.page.emulate_media(media="screen", color_scheme="light")


def test_a_saved_prompt_asks_for_its_fields(tab: User) -> None:
    tab.new_chat()
    prompt = "Write in {{language}}, as {{ who }} would: {{language}} alone."
    tab.page.locator("header [data-opens=settings]").click()
    system, prompts = tab.page.locator("#system"), tab.page.locator("#prompts")
    system.fill(prompt)
    tab.page.get_by_role("button", name="Save prompt").click()
    system.fill("")
    prompts.select_option(prompt)
    asking = tab.page.get_by_role("dialog", name="Fill in the prompt")
    asking.get_by_label("language").fill("Latin")
    asking.get_by_label("who").fill("Cicero")
    assert tab.faults_of_access() == []
    asking.get_by_role("button", name="Use prompt").click()
    expect(system).to_have_value("Write in Latin, as Cicero would: Latin alone.")
    prompts.select_option(prompt)
    asking.get_by_role("button", name="Close").click()
    expect(system).to_have_value("Write in Latin, as Cicero would: Latin alone.")
    assert tab.page.locator("#prompts optgroup").first.locator("option").count() == 1
    tab.page.get_by_role("button", name="Done").click()
