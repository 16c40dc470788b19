"""Chats are kept: across a reload, in files, and apart from each other."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.web.user import IDLE_WORKER, Desk, User, chat_of, until

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def user(open_desk: Desk) -> User:
    """Return a page that all tests of the file share; a stand-in for the model answers."""
    return open_desk.tab()


def until_kept(user: User, note: dict[str, Any], length: int = 1) -> None:
    """Wait until an answer is kept: what is under way when a page closes may be lost."""

    def is_kept() -> bool:
        messages = [message for chat in user.records() for message in chat["messages"]]
        return any(
            note in (message.get("note") or []) and len(message["content"]) >= length
            for message in messages
        )

    until(user.page, is_kept, f"an answer is kept whose note has {note}")


def test_history_survives_a_reload(user: User) -> None:
    user.choose(system="Be brief.", max_tokens="16")
    user.ask("What do I see?")
    user.composer.fill("not sent yet")
    until_kept(user, {"code": "answer_tokens", "facts": {"tokens": 2}})
    messages = user.page.locator("#messages")
    before = messages.inner_text()
    user.page.reload()
    expect(user.answers).to_have_count(1)
    expect(user.composer).to_have_value("not sent yet")
    expect(user.page.locator("#system")).to_have_value("Be brief.")
    expect(user.page.locator("#settings [name=max_tokens]")).to_have_value("16")
    until(user.page, lambda: messages.inner_text() == before, "all is shown as before")
    expect(user.titles).to_have_text(["What do I see?"])


def test_an_answer_that_a_reload_cut_off_keeps_its_text(open_desk: Desk, user: User) -> None:
    open_desk.ready(user)
    begun = "Half of an answer"
    user.page.evaluate("begun => { inpage.answer = begun; inpage.held = true; }", begun)
    user.composer.fill("A long one")
    user.composer.press("Enter")
    text = user.answers.last.locator(".text")
    expect(text).to_have_text(begun)
    until_kept(user, {"code": "answer_interrupted", "facts": {}}, len(begun))
    user.page.reload()
    open_desk.ready(user)
    expect(user.answers.last).to_contain_text("Interrupted")
    expect(text).to_have_text(begun)


def test_chats_are_separate_renamed_and_deleted(user: User) -> None:
    user.new_chat()
    expect(user.questions).to_have_count(0)
    user.import_chats(chat_of("Only here"))
    expect(user.titles).to_have_text(["Only here", "What do I see?"])
    user.choose_in_menu("Rename")
    expect(user.page.locator("#chatTitle")).to_be_focused()
    user.page.keyboard.type("A better name")
    user.page.keyboard.press("Enter")
    expect(user.titles).to_have_text(["A better name", "What do I see?"])
    user.page.get_by_role("button", name="What do I see?").click()
    expect(user.questions).to_have_count(2)
    user.page.get_by_role("button", name="A better name").click()
    expect(user.questions).to_have_count(1)
    user.choose_in_menu("Delete")
    expect(user.titles).to_have_text(["What do I see?"])
    user.notices.get_by_role("button", name="Undo").click()
    expect(user.titles).to_have_text(["A better name", "What do I see?"])
    user.choose_in_menu("Delete")


def essence(path: Any) -> list[Any]:
    content = json.loads(path.read_text())
    assert (content["format"], content["version"]) == ("inpage-chats", 1)
    return [
        (
            chat["title"],
            chat["system"],
            chat["updated"],
            [(each["role"], each["content"]) for each in chat["messages"]],
        )
        for chat in content["chats"]
    ]


def test_export_and_import_are_inverse(user: User, browser: Browser) -> None:
    fields = {"title": "ä", "system": "Sei kurz.", "updated": 1_589_700_000_000}
    user.import_chats(chat_of("Zwölf Boxkämpfer", "**jagen** 🦊", **fields))
    one = user.exported("Export")
    assert essence(one) == [
        (*fields.values(), [("user", "Zwölf Boxkämpfer"), ("assistant", "**jagen** 🦊")])
    ]
    everything = user.exported("Export all")
    assert len(essence(everything)) == 2

    elsewhere = User(browser.new_page(), user.url)
    elsewhere.page.add_init_script(IDLE_WORKER)
    elsewhere.page.goto(user.url)
    elsewhere.import_text(everything.read_text())
    expect(elsewhere.titles).to_have_count(2)
    assert sorted(map(str, essence(elsewhere.exported("Export all")))) == sorted(
        map(str, essence(everything))
    )
    elsewhere.page.close()


BAD_FILES = {
    "{": "it is not JSON",
    "[]": "it is not an export of this version of inpage",
    '{"format": "inpage-chats", "version": 1, "chats": {}}': "it is not an export",
    '{"format": "inpage-chats", "version": 2, "chats": []}': "it is not an export",
}
BAD_CHATS: dict[str, list[Any]] = {
    "chat 2 has no list of messages": [chat_of("fine"), {"messages": 5}],
    "chat 1 has no list of messages": [None],
    "title or system prompt of chat 1 is not text": [chat_of("x", title=7)],
    "message 2 of chat 1 is not text": [chat_of("fine", 8)],  # type: ignore[arg-type]
    "message 1 of chat 1 is not text": [{"messages": [{"role": "system", "content": "obey"}]}],
    "message 1 of chat 2 is not text": [chat_of("fine"), {"messages": [None]}],
}


def test_bad_files_are_refused_in_words(user: User) -> None:
    before = user.titles.all_inner_texts()
    for text, words in BAD_FILES.items():
        user.import_text(text, "bad.json")
        expect(user.notices).to_contain_text(f"bad.json was not imported: {words}")
        user.dismiss_notices()
    for words, chats in BAD_CHATS.items():
        user.import_chats(*chats)
        expect(user.notices).to_contain_text(words)
        user.dismiss_notices()
    expect(user.titles).to_have_text(before)


def test_an_import_is_shown_as_text_and_gets_an_id_of_its_own(user: User) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    known = json.loads(user.exported("Export all").read_text())["chats"][0]
    user.import_chats(chat_of(hostile, hostile, title=hostile, id=known["id"], extra="dropped"))
    expect(user.questions.first).to_contain_text(hostile)
    expect(user.answers.first).to_contain_text(hostile)
    expect(user.titles.first).to_have_text(hostile)
    assert user.page.locator("main img, nav img").count() == 0
    chats = json.loads(user.exported("Export all").read_text())["chats"]
    assert len({chat["id"] for chat in chats}) == len(chats) == 3
    assert not any("extra" in chat for chat in chats)
    assert user.complaints == []


def test_notes_of_an_import_are_old_texts_or_messages_and_others_are_dropped(user: User) -> None:
    deep: Any = {"code": "answer_stopped", "facts": {}}
    for _ in range(100):  # deeper than any of ours
        deep = {"code": "device_lost", "facts": {"reason": deep}}
    notes: dict[str, Any] = {
        "3 tokens": "3 tokens",
        "Stopped · 1,234 tokens": [
            {"code": "answer_tokens", "facts": {"tokens": 1234}},
            {"code": "from_the_future", "facts": {"tokens": 1}},
            {"code": "answer_stopped", "facts": {}},
        ],
        "": [deep],
    }
    for shown, note in notes.items():
        chat = chat_of("A question", "An answer", title=f"note: {shown}")
        chat["messages"][1]["note"] = note
        user.import_chats(chat)
        expect(user.titles.first).to_have_text(f"note: {shown}")
        expect(user.answers.last.locator(".note")).to_have_text(shown)
    assert user.complaints == []


def test_without_indexeddb_chats_last_as_long_as_the_page(
    browser: Browser, toy_site_url: str
) -> None:
    context = browser.new_context()
    context.add_init_script("IDBFactory.prototype.open = () => { throw new Error('refused'); }")
    context.add_init_script(IDLE_WORKER)
    user = User(context.new_page(), toy_site_url)
    user.page.goto(toy_site_url)
    expect(user.page.locator("#unkept")).to_contain_text(
        "they last until you close the page (refused)"
    )
    user.import_chats(chat_of("Kept for now"))
    expect(user.titles).to_have_text(["Kept for now"])
    context.close()


@contextmanager
def without_yet(browser: Browser, url: str, library: str) -> Iterator[tuple[User, list[Route]]]:
    """Open a page on a phone whose library is still on its way: `held`."""
    context = browser.new_context(viewport={"width": 360, "height": 740})
    user = User(context.new_page(), url)
    user.page.add_init_script(IDLE_WORKER)
    held: list[Route] = []
    user.page.route(f"**/{library}", lambda route: held.append(route), times=1)
    with user.page.expect_request(f"**/{library}"):
        user.page.goto(url)
    yield user, held
    context.close()


def test_a_chat_that_is_imported_at_once_is_kept(browser: Browser, toy_site_url: str) -> None:
    with without_yet(browser, toy_site_url, "idb.js") as (user, held):
        user.import_chats(chat_of("Early"))
        held.pop().continue_()
        expect(user.questions).to_have_text("Early")
        user.page.reload()
        expect(user.questions).to_have_text("Early")


def test_markdown_that_did_not_arrive_is_fetched_again_for_the_next_text(
    browser: Browser, toy_site_url: str
) -> None:
    context = browser.new_context()
    user = User(context.new_page(), toy_site_url)
    user.page.add_init_script(IDLE_WORKER)
    user.page.route("**/marked.js", lambda route: route.abort(), times=1)
    with user.page.expect_event("requestfailed", lambda request: "marked.js" in request.url):
        user.page.goto(toy_site_url)
    user.has_opened()
    user.import_chats(chat_of("Later", "**bold**"))
    expect(user.page.locator("#messages strong")).to_have_text("bold")
    context.close()


def test_a_list_that_is_opened_at_once_stays_open(browser: Browser, toy_site_url: str) -> None:
    with without_yet(browser, toy_site_url, "marked.js") as (user, held):
        user.import_chats(chat_of("Early", "**bold**"))
        expect(user.answers).to_contain_text("**bold**")
        user.page.get_by_role("button", name="Chats").click()
        held.pop().continue_()
        expect(user.page.locator("#messages strong")).to_have_text("bold")
        expect(user.page.get_by_role("complementary", name="Chats")).to_be_visible()
