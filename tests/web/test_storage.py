"""Storage of the browser that is hostile or goes away: the page starts, and says what is lost."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.web.user import IN_HASTE, TICKS_WHEN_LOOKED_AT, Desk, User, chat_of, clock, until

pytestmark = pytest.mark.browser

PUT = """async records => {
    const database = await (await import("/ui/chat_storage.js")).opened;
    for (const record of records) await database.put("chats", record);
}"""
ONLY_HERE = "they last until you close the page"


def unkept(user: User) -> Any:
    return user.page.get_by_role("alert").filter(has_text=ONLY_HERE)


# ---- hostile settings, drafts and records

HOSTILE_SETTINGS = [
    "{",
    '[["__proto__", "1"], ["elements", "1"], ["resetSettings", "1"], ["system", "obey"]]',
    '[["temperature", "99"], ["temperature", {}], ["theme", "pink"], ["seed", "-1"]]',
]
MORE_SETTINGS = [
    "null",
    "7",
    '"text"',
    "[7]",
    "[[]]",
    '[["gone", "1"]]',
    '{"version": 9, "chosen": {"temperature": 1}}',
    '{"version": 1, "chosen": [["gone", "1"], ["top_k", "5.5"]]}',
]


@pytest.mark.parametrize(
    "text",
    [
        *HOSTILE_SETTINGS,
        *(pytest.param(text, marks=pytest.mark.thorough) for text in MORE_SETTINGS),
    ],
)
def test_no_settings_keep_the_page_from_starting(desk: Desk, text: str) -> None:
    user = desk.tab(script=f"localStorage.inpageSettings = {json.dumps(text)}")
    expect(user.page.locator("[name=temperature]")).to_have_value("")  # the engine's to choose
    expect(user.page.locator("[name=top_k]")).to_have_value("")
    expect(user.page.locator("#theme")).to_have_value("system")
    expect(user.page.locator("#system")).to_have_value("")
    user.ask("Hello")
    expect(user.answers).to_have_count(1)
    assert user.complaints == []


@pytest.mark.parametrize(
    "text", ['[["gone", "1"], ["top_k", "7"]]', '{"version": 1, "chosen": [["top_k", "7"]]}']
)
def test_settings_that_still_are_there_are_taken(desk: Desk, text: str) -> None:
    user = desk.tab(script=f"localStorage.inpageSettings = {json.dumps(text)}")
    expect(user.page.locator("[name=top_k]")).to_have_value("7")


def test_without_any_storage_the_page_works(desk: Desk) -> None:
    refuse = """for (const area of ["localStorage", "sessionStorage"]) {
        Object.defineProperty(globalThis, area, {get() { throw new DOMException("refused"); }});
    }"""
    user = desk.tab(script=refuse)
    user.choose(top_k="3")
    user.ask("Hello")
    expect(user.answers).to_have_count(1)
    assert user.complaints == []


def test_full_storage_does_not_swallow_a_question(desk: Desk) -> None:
    full = """for (let size = 2 ** 23; size; ) {
        try {
            localStorage[`of others ${Math.random()}`] = "x".repeat(size);
        } catch {
            size >>= 1;
        }
    }"""
    user = desk.tab(script=full)
    user.ask("Hello")
    expect(user.answers).to_have_count(1)
    assert user.complaints == []


HOSTILE_RECORDS: list[dict[str, Any]] = [
    {"id": "none"},
    {"id": "number", "messages": 7},
    {"id": "null", "messages": [None]},
    {"id": "role", **chat_of("x"), "messages": [{"role": "system", "content": "obey"}]},
    {"id": "text", "messages": [{"role": "user", "content": {"slice": 1}}]},
    {"id": "title", **chat_of("x", title={"a": 1})},
    {"id": "newer", "version": 99, **chat_of("from the future")},
    {"id": 5, **chat_of("numbered", title=5)},
]
ODD_RECORDS: list[dict[str, Any]] = [
    {
        "id": "odd",
        **chat_of("Odd", "fields"),
        "updated": "now",
        "gone": 5,
        "set": 7,
        "deleted": None,
    },
    {"id": "twins", **chat_of("Twins"), "updated": 1},
]


def test_one_chat_that_cannot_be_read_keeps_no_other_from_being_listed(desk: Desk) -> None:
    user = desk.tab()
    user.ask("Sound")
    user.page.evaluate(PUT, [*HOSTILE_RECORDS, *ODD_RECORDS])
    before = [each for each in user.records() if each["id"] in ("newer", "null", 5)]
    user.page.reload()
    desk.ready(user)
    expect(user.titles).to_have_text(["Sound", "Twins", "Odd"])
    expect(user.notices).to_contain_text(f"{len(HOSTILE_RECORDS)} of your chats cannot be read")
    user.ask("Goes on")
    user.page.get_by_role("button", name="Odd").click()
    user.ask("More")
    expect(user.answers).to_have_count(2)
    assert [each for each in user.records() if each["id"] in ("newer", "null", 5)] == before
    assert user.complaints == []


# ---- answers that Markdown cannot take

DEEP = ">" * 1500
SLOW = "a*_" * 10_000


def test_an_answer_that_breaks_markdown_hides_no_chat(desk: Desk) -> None:
    user = desk.tab()
    user.ask("Harmless")
    user.new_chat()
    user.page.evaluate("text => { inpage.answer = text; }", DEEP)
    expect(user.ask("Break it").locator(".text")).to_contain_text(DEEP)
    user.page.evaluate("inpage.answer = 'An answer'")
    user.ask("Goes on")
    expect(user.answers).to_have_count(2)
    user.page.reload()
    desk.ready(user)
    expect(user.titles).to_have_text(["Break it", "Harmless"])
    expect(user.answers.first.locator(".text")).to_contain_text(DEEP)
    assert user.complaints == []


def test_what_is_on_screen_is_what_is_deleted(desk: Desk) -> None:
    user = desk.tab()
    user.ask("Harmless")
    user.import_chats(chat_of("Deep", DEEP), chat_of("Slow", SLOW))
    expect(user.notices).to_contain_text("2 chats imported")
    expect(user.questions).to_have_text(["Deep"])
    user.choose_in_menu("Delete")
    expect(user.titles).to_have_text(["Slow", "Harmless"])
    with clock(user.page, TICKS_WHEN_LOOKED_AT):
        user.page.get_by_role("button", name="Slow").click()
        expect(user.questions).to_have_text(["Slow"])
        assert user.answers.locator(".text").text_content() == SLOW
    user.choose_in_menu("Delete")
    expect(user.titles).to_have_text(["Harmless"])
    assert user.complaints == []


# ---- the database goes away


def ask_and_see_it_kept(user: User) -> None:
    """Ask and wait until the answer is kept: the next database then has no loss to report."""
    user.ask("Dear to me")
    until(user.page, lambda: "answer_tokens" in str(user.records()), "the answer is kept")


def lengths(user: User) -> list[int]:
    """Return the lengths of the chats that are kept, in messages."""
    return [len(each["messages"]) for each in user.records()]


def kept_titles(user: User) -> list[str]:
    return [each["title"] for each in user.records()]


def exported_questions(user: User) -> list[str]:
    with user.page.expect_download() as download:
        unkept(user).get_by_role("button", name="Export all").click()
    chats = json.loads(download.value.path().read_text())["chats"]
    return [chat["messages"][0]["content"] for chat in chats]


def test_cleared_chats_are_told_of_and_kept_again_if_the_user_wants(desk: Desk) -> None:
    user = desk.tab()
    ask_and_see_it_kept(user)
    session = desk.context.new_cdp_session(user.page)
    origin = desk.url.rstrip("/")
    session.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "indexeddb"})
    expect(user.page.get_by_text("were cleared")).to_be_visible()
    assert exported_questions(user) == ["Dear to me"]
    assert user.records() == [], "what a user cleared does not come back by itself"
    user.page.get_by_role("button", name="Save them").click()
    expect(unkept(user)).to_be_hidden()
    user.ask("And more")
    user.page.reload()
    desk.ready(user)
    expect(user.questions).to_have_text(["Dear to me", "And more"])
    assert user.complaints == []


def test_a_database_that_another_tab_deletes_is_opened_anew(desk: Desk) -> None:
    user = desk.tab()
    ask_and_see_it_kept(user)
    user.page.evaluate("""() => new Promise((resolve, reject) => {
        const deleting = indexedDB.deleteDatabase("inpage");
        deleting.onsuccess = resolve;
        deleting.onblocked = () => reject(new Error("the page holds it"));
    })""")
    expect(user.page.get_by_text("were cleared")).to_be_visible()
    user.ask("Goes on")
    user.page.get_by_role("button", name="Save them").click()
    expect(unkept(user)).to_be_hidden()
    assert lengths(user) == [4]
    assert user.complaints == []


def test_a_connection_that_closed_is_opened_anew(desk: Desk) -> None:
    user = desk.tab()
    user.ask("Dear to me")
    user.page.evaluate(
        "import('/ui/chat_storage.js').then(async ({opened}) => (await opened).close())"
    )
    user.ask("Goes on")
    expect(user.answers).to_have_count(2)
    until(user.page, lambda: lengths(user) == [4], "the next attempt to save succeeds")
    expect(unkept(user)).to_be_hidden()
    assert user.complaints == []


def test_a_change_is_kept_whose_predecessor_is_just_being_written_when_the_connection_closes(
    desk: Desk,
) -> None:
    user = desk.tab()
    ask_and_see_it_kept(user)
    user.page.evaluate("""async () => {
        const {opened, saveChat} = await import("/ui/chat_storage.js");
        const {chats} = await import("/ui/chats.js");
        const [chat] = chats.values();
        const database = await opened;
        const {put} = IDBObjectStore.prototype;
        IDBObjectStore.prototype.put = function (record) {
            IDBObjectStore.prototype.put = put;
            const request = put.call(this, record);
            database.dispatchEvent(new Event("versionchange")); // it is opened anew
            chat.title = "Changed meanwhile";
            saveChat(chat);
            return request;
        };
        await saveChat(chat);
    }""")
    until(user.page, lambda: kept_titles(user) == ["Changed meanwhile"], "the change is kept")
    assert user.complaints == []


def test_a_full_disk_is_told_until_there_is_room(desk: Desk) -> None:
    user = desk.tab(script=IN_HASTE)
    user.ask("Before")
    user.page.evaluate("""() => {
        const {put} = IDBObjectStore.prototype;
        globalThis.room = () => { IDBObjectStore.prototype.put = put; };
        IDBObjectStore.prototype.put = () => { throw new DOMException("", "QuotaExceededError"); };
    }""")
    user.ask("While it is full")
    expect(unkept(user)).to_contain_text("QuotaExceededError")
    user.new_chat()
    user.ask("Another")
    expect(unkept(user)).to_be_visible()
    expect(unkept(user).get_by_role("button", name="Dismiss")).to_have_count(0)
    assert exported_questions(user) == ["Another", "Before"]
    for theme in ("light", "dark"):
        user.page.emulate_media(color_scheme=theme)
        assert user.faults_of_access() == []
    user.page.evaluate("room()")
    expect(unkept(user)).to_be_hidden()
    assert sorted(lengths(user)) == [2, 4]
    assert user.complaints == []


def test_a_database_that_never_opens_does_not_hold_the_page_up(desk: Desk) -> None:
    never = "IDBOpenDBRequest.prototype.addEventListener = () => {}"
    user = desk.tab(script=f"{IN_HASTE}\n{never}")
    user.ask("Hello")
    expect(user.answers).to_have_text([re.compile("to Hello")])
