"""Texts of files have records of their own: a chat that grows is written without them."""

import pytest
from playwright.sync_api import expect

from tests.web.user import Desk, User, until

pytestmark = pytest.mark.browser

TEXT = "a line of a long file\n" * 2000
# The chats as the page before this one kept them.
OLD_PAGE = """records => new Promise((resolve, reject) => {
    indexedDB.deleteDatabase("inpage");
    const opening = indexedDB.open("inpage", 1);
    opening.onerror = () => reject(opening.error);
    opening.onupgradeneeded = () => opening.result.createObjectStore("chats", {keyPath: "id"});
    opening.onsuccess = () => {
        const transaction = opening.result.transaction("chats", "readwrite");
        for (const record of records) transaction.objectStore("chats").put(record);
        transaction.oncomplete = () => { opening.result.close(); resolve(); };
    };
})"""
SHOWN = """async () => (await import("/ui/chats.js")).shown.messages
    .flatMap(({attachments = []}) => attachments.map(({text}) => text))"""


def ask_about_a_file(user: User) -> None:
    user.drop({"long.txt": TEXT.encode()})
    expect(user.page.locator("#attached li")).to_have_count(1)
    user.ask("What is in it?")
    until(user.page, lambda: user.kept_files() == [TEXT], "the file is kept")


def test_a_chat_is_written_without_its_files(desk: Desk) -> None:
    user = desk.tab()
    ask_about_a_file(user)
    (record,) = user.records()
    (file,) = record["messages"][0]["attachments"]
    assert file["text"] is None
    assert file["name"] == "long.txt"
    user.ask("And what else?")
    (record,) = user.records()
    assert record["messages"][0]["attachments"] == [file]  # the same text goes on to be meant
    assert user.kept_files() == [TEXT]
    user.page.reload()
    desk.ready(user)
    expect(user.questions.first.locator(".file")).to_contain_text("long.txt")
    assert user.page.evaluate(SHOWN) == [TEXT]
    export = user.exported("Export").read_text()
    assert "a line of a long file" in export
    assert '"kept"' not in export
    assert user.complaints == []


def test_a_deleted_file_leaves_nothing_and_comes_back_whole(desk: Desk) -> None:
    user = desk.tab()
    ask_about_a_file(user)
    user.questions.first.hover()
    user.questions.first.get_by_role("button", name="Delete").click()
    until(user.page, lambda: user.kept_files() == [], "the file is gone")
    user.notices.get_by_role("button", name="Undo").click()
    until(user.page, lambda: user.kept_files() == [TEXT], "the file is back")
    user.choose_in_menu("Delete")
    until(user.page, lambda: user.kept_files() == [], "the file is gone with its chat")
    user.notices.get_by_role("button", name="Undo").last.click()
    until(user.page, lambda: user.kept_files() == [TEXT], "the file is back with its chat")
    assert user.page.evaluate(SHOWN) == [TEXT]


def test_chats_of_the_page_before_keep_their_files(desk: Desk) -> None:
    user = desk.tab()
    old_file = {"name": "old.txt", "title": "old.txt", "kind": "text", "text": TEXT, "starts": []}
    message = {"id": "1", "born": 1, "role": "user", "content": "Old", "attachments": [old_file]}
    record = {"id": "old", "title": "Old", "version": 6, "updated": 1, "messages": [message]}
    user.page.goto("about:blank")
    user.page.goto(f"{user.url}/icon.svg")  # nothing there has the database open
    user.page.evaluate(OLD_PAGE, [record])
    user.page.goto(user.url)
    desk.ready(user)
    user.page.get_by_role("button", name="Old", exact=True).click()
    expect(user.questions.locator(".file")).to_contain_text("old.txt")
    assert user.page.evaluate(SHOWN) == [TEXT]
    assert user.kept_files() == []  # it is as it was until something is written
    user.ask("Go on")
    assert user.page.evaluate(SHOWN) == [TEXT]
    until(user.page, lambda: user.kept_files() == [TEXT], "the file has a record of its own")
    (now,) = user.records()
    assert now["messages"][0]["attachments"][0]["text"] is None


def test_another_tab_reads_the_files_of_a_chat(desk: Desk) -> None:
    user, other = desk.tab(), desk.tab()
    ask_about_a_file(user)
    expect(other.titles).to_have_text(["What is in it?"])
    other.titles.first.click()
    expect(other.questions.locator(".file")).to_contain_text("long.txt")
    assert other.page.evaluate(SHOWN) == [TEXT]
    other.ask("And in this tab?")
    expect(user.questions).to_have_count(2)
    assert user.page.evaluate(SHOWN) == [TEXT]
    assert user.kept_files() == [TEXT]
