"""Files go with a question as their own: kept, found, edited; and refused where they do not fit."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.web.test_attaching import pdf, text_at
from tests.web.user import Desk, User, chat_of, until

pytestmark = pytest.mark.browser

# A token for each character, in a context of a thousand.
COUNT = """() => { inpage.countTokens = async messages => ({
    prompt_tokens: messages.reduce((sum, {content}) => sum + content.length, 0),
}); }"""
PASTE = """([name, type, text]) => {
    const clipboardData = new DataTransfer();
    clipboardData.items.add(new File(["1,2"], name, {type}));
    if (text) clipboardData.setData("text/plain", text);
    const options = {clipboardData, bubbles: true, cancelable: true};
    return document.querySelector("#draft").dispatchEvent(new ClipboardEvent("paste", options));
}"""
NOT_LOADED = "() => { inpage.model = inpage.loaded; inpage.loaded = null; }"
LOADED = """() => {
    inpage.loaded = inpage.model;
    dispatchEvent(new Event("modelchange"));
}"""
REFUSE = """reason => { inpage.chat.completions.create = () => {
    const fields = {code: "context_length_exceeded", reason, facts: FACTS};
    throw Object.assign(new Error("refused"), fields);
}; }""".replace("FACTS", "{prompt_tokens: 5300, context: 1000}")
NOTES, CODE = b"a,b\n1,2\n", b"```js\n1\n```"
AS_READ = (
    "notes.csv:\n\n```csv\na,b\n1,2\n```\n\nodd.md:\n\n````md\n```js\n1\n```\n````\n\nSum it up"
)
CHIPS = ["notes.csv · 8 bytes · 1 token", "odd.md · 11 bytes · 1 token"]


@pytest.fixture(scope="module")
def opened(browser: Browser, toy_site_url: str) -> Iterator[User]:
    desk = Desk(browser, toy_site_url)
    user = desk.tab()
    yield user
    assert user.complaints == []
    desk.context.close()


@pytest.fixture
def tab(opened: User) -> User:
    opened.new_chat()
    return opened


@pytest.fixture
def counting(tab: User) -> Iterator[User]:
    """Count a token for each character."""
    tab.page.evaluate(COUNT)
    yield tab
    tab.page.evaluate("inpage.countTokens = async () => ({prompt_tokens: 1})")


def attached(user: User) -> Locator:
    return user.page.get_by_role("list", name="Attached to the message").get_by_role("listitem")


def files_of(message: Locator) -> Locator:
    return message.get_by_role("list", name="Attached files").get_by_role("listitem")


def ask_about_two(user: User) -> None:
    user.drop({"notes.csv": NOTES, "odd.md": CODE})
    expect(attached(user)).to_have_text(CHIPS)
    user.ask("Sum it up")


def kept(user: User) -> dict[str, Any]:
    """Return the record of the open chat."""
    identity = user.page.locator("#messages").get_attribute("data-chat")
    found = [record for record in user.records() if record["id"] == identity]
    return found[0] if found else {"messages": []}


# ---- questions with files


def test_the_model_reads_the_files_and_the_bubble_has_the_question(tab: User) -> None:
    ask_about_two(tab)
    assert tab.page.evaluate("inpage.asked.messages.at(-1).content") == AS_READ
    expect(tab.questions.locator(".text")).to_have_text("Sum it up")
    expect(files_of(tab.questions)).to_have_text(CHIPS)
    expect(attached(tab)).to_have_count(0)
    expect(tab.titles.first).to_have_text("Sum it up")
    until(tab.page, lambda: kept(tab)["messages"], "the question is kept")
    question = kept(tab)["messages"][0]
    assert question["content"] == "Sum it up"
    assert sorted(tab.kept_files()) == sorted([NOTES.decode(), CODE.decode()])


def test_files_are_there_after_a_reload(desk: Desk) -> None:
    user = desk.tab()
    ask_about_two(user)
    until(user.page, lambda: kept(user)["messages"][1:], "the answer is kept")
    user.page.reload()
    desk.ready(user)
    expect(files_of(user.questions)).to_have_text(CHIPS)
    user.regenerate()
    assert user.page.evaluate("inpage.asked.messages.at(-1).content") == AS_READ
    assert user.complaints == []


def test_a_chat_without_a_word_is_named_by_its_file(tab: User) -> None:
    tab.drop({"notes.csv": NOTES})
    expect(attached(tab)).to_have_count(1)
    tab.composer.press("Enter")
    tab.answered()
    expect(tab.titles.first).to_have_text("notes.csv")
    expect(tab.questions.locator(".text")).to_be_hidden()


def test_a_file_is_read_in_a_dialog(tab: User) -> None:
    tab.page.locator("#attachFiles").set_input_files(
        {
            "name": "تقرير.pdf",
            "mimeType": "application/pdf",
            "buffer": pdf([text_at(700, "First"), text_at(700, "Second")]),
        }
    )
    expect(attached(tab)).to_have_text("تقرير.pdf · 2 pages · 1 token")
    tab.ask("What is it?")
    chip = files_of(tab.questions).get_by_role("button", name="تقرير.pdf")
    chip.focus()
    tab.page.keyboard.press("Enter")
    dialog = tab.page.get_by_role("dialog", name="تقرير.pdf")
    expect(dialog.locator("section")).to_have_text(["Page 1First", "Page 2Second"])
    expect(dialog.locator("#readerFacts")).to_have_text("2 pages · 1 token")
    assert tab.faults_of_access() == []
    dialog.get_by_role("button", name="Copy").click()
    expect(tab.notices).to_contain_text("Copied.")
    assert tab.page.evaluate("navigator.clipboard.readText()") == "First\n\nSecond\n\n"
    tab.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(chip).to_be_focused()
    tab.dismiss_notices()


def test_editing_keeps_files_and_can_remove_them(tab: User) -> None:
    ask_about_two(tab)
    tab.drop({"other.txt": b"for later"})
    tab.composer.fill("A draft")
    expect(attached(tab)).to_have_count(1)
    tab.questions.get_by_role("button", name="Edit").click()
    expect(tab.composer).to_have_value("Sum it up")
    expect(attached(tab)).to_have_text(CHIPS)
    tab.page.get_by_role("button", name="Remove odd.md").click()
    expect(tab.composer).to_be_focused()
    tab.composer.press("Enter")
    tab.answered()
    expect(files_of(tab.questions)).to_have_text(CHIPS[:1])
    tab.questions.get_by_role("button", name="Earlier version").click()
    expect(files_of(tab.questions)).to_have_text(CHIPS)
    expect(tab.composer).to_have_value("A draft")
    expect(attached(tab)).to_have_text("other.txt · 9 bytes · 1 token")
    tab.page.get_by_role("button", name="Remove other.txt").click()
    tab.composer.fill("")


def test_files_wait_in_the_chat_that_they_were_attached_in(tab: User) -> None:
    tab.ask("First")
    tab.drop({"notes.csv": NOTES})
    expect(attached(tab)).to_have_count(1)
    tab.new_chat()
    expect(attached(tab)).to_have_count(0)
    tab.titles.filter(has_text="First").first.click()
    expect(attached(tab)).to_have_text(CHIPS[:1])
    tab.page.get_by_role("button", name="Remove notes.csv").click()


def test_pasted_files_are_attached_and_pasted_texts_are_not(tab: User) -> None:
    assert tab.page.evaluate(PASTE, ["image.png", "image/png", "cells"]), "the text is pasted"
    assert not tab.page.evaluate(PASTE, ["pasted.csv", "text/csv", ""])
    expect(attached(tab)).to_have_text("pasted.csv · 3 bytes · 1 token")
    tab.page.get_by_role("button", name="Remove pasted.csv").click()


# ---- kept, found, carried


def test_search_finds_in_files(tab: User) -> None:
    tab.drop({"herons.txt": b"The grey heron stands still."})
    expect(attached(tab)).to_have_count(1)
    tab.ask("Which bird?")
    tab.new_chat()
    tab.ask("Something else")
    for words, line in {
        "GREY heron": "The grey heron stands still.",
        "herons.txt": "herons.txt",
    }.items():
        tab.page.get_by_label("Search chats").fill(words)
        expect(tab.titles.filter(visible=True)).to_have_text([f"Which bird?{line}"])
    tab.page.get_by_label("Search chats").fill("")


def test_exports_carry_files(tab: User) -> None:
    ask_about_two(tab)
    exported = tab.exported("Export").read_text()
    (chat,) = json.loads(exported)["chats"]
    assert [file["name"] for file in chat["messages"][0]["attachments"]] == ["notes.csv", "odd.md"]
    tab.new_chat()
    tab.import_text(exported)
    expect(files_of(tab.questions)).to_have_text(CHIPS)
    assert AS_READ in tab.exported("Export as Markdown").read_text()
    tab.dismiss_notices()


def test_files_that_are_none_are_refused(tab: User) -> None:
    broken = chat_of("Hello")
    broken["messages"][0]["attachments"] = [{"name": "a", "title": "a", "kind": "txt", "text": 5}]
    tab.import_chats(broken)
    expect(tab.notices).to_contain_text("message 1 of chat 1 is not text")
    tab.dismiss_notices()


def test_chats_of_older_versions_stay_as_they_are(tab: User) -> None:
    """Show them as they were: in them, files are part of the text."""
    tab.import_chats(chat_of(AS_READ, "An answer", version=4))
    expect(tab.questions.locator(".text")).to_have_text(
        re.compile(r"^notes\.csv:[\s\S]*Sum it up$")
    )
    expect(files_of(tab.questions)).to_have_count(0)
    tab.regenerate()
    assert tab.page.evaluate("inpage.asked.messages.at(-1).content") == AS_READ
    tab.dismiss_notices()


def test_a_deleted_question_takes_its_files_along(tab: User) -> None:
    ask_about_two(tab)
    tab.questions.get_by_role("button", name="Delete").click()
    expect(tab.questions).to_have_count(0)
    until(tab.page, lambda: "a,b" not in json.dumps(kept(tab)), "nothing of them is kept")
    tab.notices.get_by_role("button", name="Undo").click()
    expect(files_of(tab.questions)).to_have_text(CHIPS)


def test_a_full_disk_is_told_for_files_as_well(desk: Desk) -> None:
    user = desk.tab()
    user.page.evaluate("""() => {
        IDBObjectStore.prototype.put = () => { throw new DOMException("", "QuotaExceededError"); };
    }""")
    ask_about_two(user)
    expect(user.page.locator("#unkept")).to_contain_text("QuotaExceededError")
    expect(files_of(user.questions)).to_have_text(CHIPS)


# ---- what does not fit


def box(user: User) -> Locator:
    return user.page.locator("#tooLong")


def offers(user: User) -> Locator:
    return box(user).get_by_role("button")


def refuse(user: User, files: dict[str, bytes], question: str = "And?") -> None:
    """Have a message refused."""
    count = user.questions.count()
    user.drop(files)
    expect(attached(user)).to_have_count(len(files))
    user.composer.fill(question)
    user.composer.press("Enter")
    expect(box(user)).to_be_visible()
    expect(user.questions).to_have_count(count)
    expect(user.composer).to_have_value(question)


def meter(user: User) -> Locator:
    return user.page.locator("#contextText")


def test_the_meter_counts_files_before_they_are_sent(counting: User) -> None:
    counting.drop({"notes.csv": b"x" * 400})
    expect(meter(counting)).to_have_text(re.compile(r"Context: 4\d\d of 1,000 tokens$"))
    counting.drop({"long.txt": b"y" * 900})
    expect(meter(counting)).to_have_text(re.compile("of 1,000 tokens, over the limit"))
    for name in ("notes.csv", "long.txt"):
        counting.page.get_by_role("button", name=f"Remove {name}").click()
    expect(meter(counting)).to_have_text("Context: 0 of 1,000 tokens")


def test_sending_refuses_what_cannot_fit_and_says_by_how_much(counting: User) -> None:
    refuse(counting, {"long.txt": b"words " * 300})
    expect(box(counting)).to_contain_text(
        "Not sent: 825 tokens too many. The message has 1,825 tokens, "
        "and the model's context holds 1,000, including the answer."
    )
    expect(attached(counting)).to_have_text(re.compile("tokens, too long"))
    assert counting.faults_of_access() == []
    counting.page.locator("#tooLong").get_by_role("button", name="Remove long.txt").click()
    expect(box(counting)).to_be_hidden()
    expect(counting.composer).to_be_focused()
    counting.composer.press("Enter")
    counting.answered()
    expect(counting.questions.locator(".text")).to_have_text("And?")


def test_the_first_tokens_of_a_file_are_used(counting: User) -> None:
    refuse(counting, {"long.txt": b"words " * 300})
    offer = box(counting).get_by_role("button", name=re.compile("Use the first"))
    expect(offer).to_have_text(re.compile(r"Use the first 7\d\d tokens of long.txt"))
    offer.click()
    expect(attached(counting)).to_contain_text("of 1,821 tokens")
    expect(box(counting)).to_be_hidden()
    counting.composer.press("Enter")
    counting.answered()
    read: str = counting.page.evaluate("inpage.asked.messages.at(-1).content")
    assert 700 < len(read) < 800
    assert re.match(r"long.txt · the first 7\d\d of 1,821 tokens:\n\n```txt\nwords words", read)
    assert read.endswith("words\n```\n\nAnd?")


def test_the_first_pages_of_a_pdf_are_used(counting: User) -> None:
    rest = "".join(text_at(700 - 20 * line, "x" * 60) for line in range(1, 6))
    pages = [text_at(700, f"Page {number}") + rest for number in range(1, 6)]
    counting.page.locator("#attachFiles").set_input_files(
        {"name": "paper.pdf", "mimeType": "application/pdf", "buffer": pdf(pages)}
    )
    expect(attached(counting)).to_contain_text("5 pages")
    counting.composer.fill("And?")
    counting.composer.press("Enter")
    box(counting).get_by_role("button", name="Use the first 2 pages of paper.pdf").click()
    expect(attached(counting)).to_contain_text("the first 2 of 5 pages")
    counting.composer.press("Enter")
    counting.answered()
    read: str = counting.page.evaluate("inpage.asked.messages.at(-1).content")
    assert read.startswith("paper.pdf · the first 2 of 5 pages:\n\n```text\nPage 1\nxxx")
    assert "Page 2" in read
    assert "Page 3" not in read


def test_a_new_chat_has_room(counting: User) -> None:
    counting.ask("x" * 400)
    refuse(counting, {"notes.csv": b"y" * 400})
    box(counting).get_by_role("button", name="Start a new chat with it").click()
    expect(counting.questions).to_have_count(0)
    expect(box(counting)).to_be_hidden()
    expect(counting.composer).to_have_value("And?")
    expect(attached(counting)).to_have_count(1)
    counting.composer.press("Enter")
    counting.answered()
    expect(files_of(counting.questions)).to_have_count(1)


def test_the_oldest_messages_can_be_left_out(counting: User) -> None:
    counting.ask("x" * 400)
    refuse(counting, {}, question="y" * 400)
    expect(offers(counting)).to_have_text(
        ["Start a new chat with it", "Leave out the oldest messages"]
    )
    box(counting).get_by_role("button", name="Leave out the oldest messages").click()
    counting.answered()
    assert counting.page.evaluate("inpage.asked.context_overflow") == "drop_oldest"
    expect(box(counting)).to_be_hidden()
    expect(counting.questions).to_have_count(2)


def test_a_question_that_is_too_long_by_itself_is_to_be_shortened(counting: User) -> None:
    refuse(counting, {}, question="z" * 1200)
    expect(box(counting)).to_contain_text("200 tokens too many")
    expect(box(counting)).to_contain_text("Shorten it, or choose a model with a larger context.")
    expect(offers(counting)).to_have_count(0)
    counting.composer.fill("Short")
    expect(box(counting)).to_be_hidden()
    counting.composer.press("Enter")
    counting.answered()


@pytest.mark.parametrize(
    ("reason", "is_offered"), [("prompt_too_long", True), ("question_too_long", False)]
)
def test_dropping_is_offered_only_where_it_can_help(
    desk: Desk, reason: str, is_offered: bool
) -> None:
    """Send while there is no model yet: such a message is counted late."""
    user = desk.tab()
    user.page.evaluate(REFUSE, reason)
    user.page.evaluate(NOT_LOADED)
    user.composer.fill("Too long")
    user.composer.press("Enter")
    user.page.evaluate(LOADED)
    expect(user.answers.locator(".error")).to_contain_text("5,300 tokens")
    drop = user.answers.get_by_role("button", name="Drop the oldest messages and continue")
    expect(drop).to_have_count(int(is_offered))
