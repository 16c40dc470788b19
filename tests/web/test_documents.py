"""Files longer than the context: each question is given passages, which are shown as quotes."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.web.test_attaching import pdf, text_at
from tests.web.user import User

pytestmark = pytest.mark.browser

PAGES = 300
FILLER = "The quarterly figures of page {} are as expected, and nothing else was noted by anybody."
FACTS = {
    3: "The lighthouse of Skerry was lit in 1811.",
    150: "Its keeper fed a heron named Balthasar.",
    287: "The repair cost 4700 guilders.",
}
QUESTIONS = {
    3: "When was the lighthouse lit?",
    150: "Who was the heron?",
    287: "How many guilders?",
}
SEARCH = "Search report.pdf for each question"


def report() -> bytes:
    """Return 300 pages of filler, with a fact on three of them."""
    pages = []
    for number in range(1, PAGES + 1):
        lines = [FILLER.format(number)] * 8
        lines.insert(4, FACTS.get(number, "Nothing happened."))
        pages.append("".join(text_at(760 - 20 * at, line) for at, line in enumerate(lines)))
    return pdf(pages)


def attach(user: User, name: str, content: bytes, kind: str = "application/pdf") -> None:
    file: Any = {"name": name, "mimeType": kind, "buffer": content}
    user.page.locator("#attachFiles").set_input_files(file)


def quotes(user: User) -> Locator:
    return user.answers.last.locator(".quotes button")


def sent(user: User) -> str:
    content: str = user.page.evaluate("sent.at(-1).messages.at(-1).content")
    return content


@pytest.fixture(scope="module")
def reading(browser: Browser, toy_site_url: str) -> Iterator[User]:
    """Ask about a report of 300 pages, on the processor; what the model reads is noted."""
    user = User(browser.new_page(), f"{toy_site_url}?device=cpu")
    user.open()
    user.load()
    user.talk_on()
    user.choose(max_tokens="16", temperature="0")
    user.page.evaluate("""() => {
        globalThis.sent = [];
        const {completions} = inpage.chat;
        const create = completions.create;
        completions.create = request => { sent.push(request); return create(request); };
    }""")
    attach(user, "report.pdf", report())
    expect(user.page.locator("#attached li")).to_contain_text("300 pages · ")
    user.composer.fill(QUESTIONS[3])
    user.composer.press("Enter")
    box = user.page.locator("#tooLong")
    expect(box).to_be_visible()
    expect(box.get_by_role("button").first).to_have_text(SEARCH)
    box.get_by_role("button", name=SEARCH).click()
    chip = user.page.locator("#attached li")
    expect(chip).to_have_text("report.pdf · 300 pages · searched for each question")
    expect(box).to_be_hidden()
    user.composer.press("Enter")
    user.answered()
    yield user
    user.page.close()


def test_questions_are_answered_from_the_right_pages(reading: User) -> None:
    for page, question in QUESTIONS.items():
        if page != 3:
            reading.ask(question)
        expect(quotes(reading).first).to_contain_text(f"report.pdf · page {page}")
        expect(quotes(reading).first).to_contain_text(FACTS[page])
        asked = sent(reading)
        assert asked.startswith(f"[1] report.pdf, page {page}:\n\n```text\n")
        assert FACTS[page] in asked
        assert asked.endswith(question)
        others = [fact for other, fact in FACTS.items() if other != page]
        whole = json.dumps(reading.page.evaluate("sent.at(-1).messages"))
        assert not any(fact in whole for fact in others), "earlier passages are not read again"
    learning = reading.page.locator("#notices .learning")
    expect(learning).to_have_count(0)  # the model would take minutes here


def test_a_quote_opens_the_file_at_its_page(reading: User) -> None:
    quotes(reading).first.click()
    dialog = reading.page.get_by_role("dialog", name="report.pdf")
    mark = dialog.locator("mark")
    expect(mark).to_contain_text(FACTS[287])
    expect(mark).to_be_in_viewport()
    expect(dialog.locator("section:has(mark) h3")).to_have_text("Page 287")
    reading.page.keyboard.press("Escape")


def test_regenerating_uses_the_same_passages(reading: User) -> None:
    before, shown = sent(reading), quotes(reading).all_inner_texts()
    reading.regenerate()
    assert sent(reading) == before
    expect(quotes(reading)).to_have_text(shown, use_inner_text=True)


def test_exports_say_which_passages_were_used(reading: User) -> None:
    (chat,) = json.loads(reading.exported("Export").read_text())["chats"]
    found = [each["sources"]["passages"][0] for each in chat["messages"] if "sources" in each]
    assert [(each["unit"], each["first"]) for each in found] == [("page", page) for page in FACTS]
    markdown = reading.exported("Export as Markdown").read_text()
    assert all(f"[1] report.pdf, page {page}:" in markdown for page in FACTS)


@pytest.mark.model
@pytest.mark.thorough
def test_the_default_model_reads_the_right_passages(browser: Browser, site_url: str) -> None:
    page = browser.new_page()
    user = User(page, f"{site_url}?device=cpu")
    user.open()
    user.load()
    user.choose(max_tokens="24", temperature="0")
    attach(user, "report.pdf", report())
    expect(page.locator("#attached li")).to_contain_text(" tokens")
    user.composer.fill(QUESTIONS[150])
    user.composer.press("Enter")
    page.get_by_role("button", name=SEARCH).click()
    user.composer.press("Enter")
    expect(quotes(user).first).to_contain_text("report.pdf · page 150")
    for number in (3, 287):
        user.ask(QUESTIONS[number])
        expect(quotes(user).first).to_contain_text(f"report.pdf · page {number}")
        expect(quotes(user).first).to_contain_text(FACTS[number])
    expect(page.locator("#notices .learning")).to_have_count(0)
    page.close()
