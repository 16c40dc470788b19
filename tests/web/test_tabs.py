"""Two tabs with the same chats: nothing that was typed in either is lost."""

import re

import pytest
from playwright.sync_api import expect

from tests.web.user import DEAF, Desk, User, until

pytestmark = pytest.mark.browser

ALSO_OPEN = "This chat is also open in another tab"


def questions(user: User) -> list[str]:
    return [text.strip() for text in user.questions.locator(".text").all_inner_texts()]


def stored(user: User) -> list[list[str]]:
    """Questions of each chat that storage has and that is not deleted."""
    return [
        [each["content"] for each in chat["messages"] if each["role"] == "user" and each["content"]]
        for chat in user.records()
        if chat["messages"]
    ]


def names_and_rules(user: User) -> list[tuple[str, str]]:
    return [(chat["title"], chat["system"]) for chat in user.records()]


def becomes_stored(user: User, *chats: list[str]) -> None:
    """Wait until chats are stored: an answer is on screen before it is kept."""
    until(user.page, lambda: stored(user) == [*chats], f"these are kept: {chats}")


@pytest.mark.parametrize("script", ["", DEAF], ids=["hearing", "deaf"])
def test_turns_of_both_tabs_are_kept(desk: Desk, script: str) -> None:
    first = desk.tab(script=script)
    first.ask("One")
    second = desk.tab(script=script)
    expect(second.questions).to_have_count(1)
    first.come_to_front()
    first.ask("In the first tab")
    second.come_to_front()
    second.ask("In the second tab")
    expect(second.questions).to_have_count(3)
    until(second.page, lambda: "to In the second tab" in str(second.records()), "it is kept")
    second.page.reload()
    desk.ready(second)
    assert questions(second) == ["One", "In the first tab", "In the second tab"]
    expect(second.answers).to_have_text([re.compile(f"to {text}") for text in questions(second)])
    if not script:
        expect(first.questions).to_have_count(3)
        assert questions(first) == questions(second)


def test_what_was_deleted_in_one_tab_does_not_come_back_from_the_other(desk: Desk) -> None:
    first = desk.tab(script=DEAF)
    first.ask("Stays")
    first.ask("Goes")
    second = desk.tab(script=DEAF)
    first.come_to_front()
    first.questions.last.get_by_role("button", name="Delete").click()
    expect(first.questions).to_have_count(1)
    second.come_to_front()
    second.ask("Comes")
    becomes_stored(second, ["Stays", "Comes"])
    first.come_to_front()
    first.notices.get_by_role("button", name="Undo").click()
    expect(first.questions).to_have_count(3)
    assert questions(first) == ["Stays", "Goes", "Comes"]


def test_a_chat_that_was_deleted_in_another_tab_stays_deleted(desk: Desk) -> None:
    first = desk.tab()
    first.ask("Away with it")
    second = desk.tab()
    second.page.evaluate("inpage.held = true")
    second.composer.fill("And this")
    second.composer.press("Enter")
    expect(first.questions).to_have_count(2)
    expect(first.answers.last).to_contain_text("Being written in another tab")
    second.page.evaluate("() => { document.querySelector('#draft').value = 'half a word'; }")
    first.come_to_front()
    first.choose_in_menu("Delete")
    expect(second.notices).to_contain_text("“Away with it” was deleted in another tab.")
    expect(second.questions).to_have_count(0)
    expect(second.stop).to_be_hidden()
    expect(second.composer).to_have_value("half a word")
    expect(second.titles).to_have_count(0)
    becomes_stored(second)
    assert "Away" not in str(second.records()), "a deleted chat leaves no text behind"
    for user in (first, second):
        user.page.reload()
        desk.ready(user)
        expect(user.titles).to_have_count(0)


def test_a_tab_that_comes_later_knows_what_another_one_is_writing(desk: Desk) -> None:
    first = desk.tab()
    first.page.evaluate("() => { inpage.held = inpage.isSilent = true; }")
    first.composer.fill("A long one")
    first.composer.press("Enter")
    until(first.page, lambda: first.records() != [], "the question is kept")
    second = desk.tab()
    second.come_to_front()
    expect(second.answers.last).to_contain_text("Being written in another tab")
    expect(second.answers.last.get_by_role("button", name="Regenerate")).to_be_hidden()
    first.page.evaluate("() => { inpage.held = inpage.isSilent = false; }")
    expect(second.answers.last).to_contain_text("2 tokens")
    expect(second.answers.last.get_by_role("button", name="Regenerate")).to_be_visible()


def test_an_answer_is_interrupted_once_its_tab_is_gone(desk: Desk) -> None:
    first = desk.tab()
    first.page.evaluate("() => { inpage.held = inpage.isSilent = true; }")
    first.composer.fill("Never ends")
    first.composer.press("Enter")
    until(first.page, lambda: first.records() != [], "the question is kept")
    second = desk.tab()
    expect(second.answers.last).to_contain_text("Being written in another tab")
    first.page.close()
    expect(second.answers.last).to_contain_text("Interrupted")


def test_a_deletion_in_another_tab_can_be_taken_back_here(desk: Desk) -> None:
    first, second = desk.tab(), desk.tab()
    first.come_to_front()
    first.ask("Away with it")
    second.come_to_front()
    second.page.get_by_role("button", name="Away with it").click()
    first.come_to_front()
    first.choose_in_menu("Delete")
    second.come_to_front()
    second.notices.get_by_role("button", name="Undo").click()
    expect(second.questions).to_have_text(["Away with it"])
    expect(first.titles).to_have_text(["Away with it"])


def test_going_on_with_a_chat_that_was_deleted_elsewhere_brings_it_back(desk: Desk) -> None:
    """A user who continues what is on screen wants that, and not the last question alone."""
    first = desk.tab(script=DEAF)
    first.ask("Before")
    second = desk.tab(script=DEAF)
    first.come_to_front()
    first.choose_in_menu("Delete")
    expect(first.titles).to_have_count(0)
    second.come_to_front()
    second.ask("After")
    becomes_stored(second, ["Before", "After"])
    second.page.reload()
    desk.ready(second)
    assert questions(second) == ["Before", "After"]


def test_names_and_system_prompts_of_both_tabs_are_kept(desk: Desk) -> None:
    first = desk.tab(script=DEAF)
    first.ask("Hello")
    second = desk.tab(script=DEAF)
    first.come_to_front()
    first.choose(system="Be brief.")
    second.come_to_front()
    second.page.get_by_label("Chat name").fill("A name")
    second.page.keyboard.press("Enter")
    until(
        second.page, lambda: names_and_rules(second) == [("A name", "Be brief.")], "both are kept"
    )
    second.page.reload()
    desk.ready(second)
    expect(second.titles).to_have_text(["A name"])
    expect(second.page.locator("#system")).to_have_value("Be brief.")


def test_a_chat_that_is_open_twice_says_so(desk: Desk) -> None:
    first = desk.tab()
    expect(first.page.get_by_text(ALSO_OPEN)).to_be_hidden()
    first.ask("Hello")
    second = desk.tab()
    for user in (first, second):
        expect(user.page.get_by_text(ALSO_OPEN)).to_be_visible()
        assert user.faults_of_access() == []
    second.new_chat()
    for user in (first, second):
        expect(user.page.get_by_text(ALSO_OPEN)).to_be_hidden()
    second.page.get_by_role("button", name="Hello").click()
    expect(first.page.get_by_text(ALSO_OPEN)).to_be_visible()
    second.page.close(run_before_unload=True)
    expect(first.page.get_by_text(ALSO_OPEN)).to_be_hidden()
    assert first.complaints == []


def test_each_tab_keeps_its_own_draft_and_its_own_chat(desk: Desk) -> None:
    first = desk.tab()
    first.ask("One")
    first.composer.fill("first draft")
    second = desk.tab()
    second.new_chat()
    second.ask("Two")
    second.composer.fill("second draft")
    first.page.reload()
    desk.ready(first)
    expect(first.composer).to_have_value("first draft")
    assert questions(first) == ["One"]


def test_chats_from_before_messages_had_ids_are_merged_too(desk: Desk) -> None:
    old = [{"role": "user", "content": "Old"}, {"role": "assistant", "content": "times"}]
    desk.tab().page.evaluate(
        """async messages => (await (await import("/ui/chat_storage.js")).opened)
            .put("chats", {id: "o", title: "", system: "", updated: 1, messages})""",
        old,
    )
    first, second = desk.tab(script=DEAF), desk.tab(script=DEAF)
    for user in (first, second):
        user.come_to_front()
        user.page.get_by_role("button", name="Old", exact=True).click()
    first.come_to_front()
    first.ask("A")
    second.come_to_front()
    second.ask("B")
    becomes_stored(second, ["Old", "A", "B"])
