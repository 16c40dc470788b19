"""Nothing is lost: versions, branches, drafts, what was deleted; in two tabs as well."""

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.web.user import DEAF, Desk, User, until

pytestmark = pytest.mark.browser

PUT = (
    """async record => (await (await import("/ui/chat_storage.js")).opened).put("chats", record)"""
)
PATH = """async () => {
    const {shown} = await import("/ui/chats.js");
    return (await import("/ui/chats.js")).pathOf(shown).map(({content}) => content);
}"""


def say(user: User, text: str) -> None:
    user.page.evaluate("text => { inpage.answer = text; }", text)


def regenerate(user: User, text: str) -> Locator:
    say(user, text)
    user.page.get_by_role("button", name="Regenerate").click()
    expect(user.answers.last).to_contain_text(text)
    return user.answered()


def which(message: Locator) -> Locator:
    return message.locator(".which")


def until_kept(user: User, *texts: str) -> None:
    """Wait until texts are kept: what is under way when a page closes may be lost."""

    def are_kept() -> bool:
        kept = str(user.records())
        return all(text in kept for text in texts)

    until(user.page, are_kept, f"these are kept: {texts}")


def path(user: User) -> list[str]:
    texts: list[str] = user.page.evaluate(PATH)
    return texts


def test_regenerating_adds_a_version_and_the_old_one_stays(desk: Desk) -> None:
    user = desk.tab()
    say(user, "One")
    answer = user.ask("Hello")
    expect(which(answer)).to_be_hidden()
    regenerate(user, "Two")
    answer = regenerate(user, "Three")
    expect(user.answers).to_have_count(1)
    expect(which(answer)).to_have_text("3/3")
    expect(answer.get_by_role("button", name="Later version")).to_be_disabled()
    assert user.faults_of_access() == []
    answer.get_by_role("button", name="Earlier version").click()
    expect(user.answers.last).to_contain_text("Two")
    expect(which(user.answers.last)).to_have_text("2/3")
    expect(user.answers.last.get_by_role("button", name="Earlier version")).to_be_focused()
    user.ask("Go on")
    until_kept(user, "to Go on")
    user.page.reload()
    desk.ready(user)
    expect(user.answers.first).to_contain_text("Two")
    expect(which(user.answers.first)).to_have_text("2/3")
    expect(user.questions).to_have_text(["Hello", "Go on"])
    user.answers.first.get_by_role("button", name="Later version").click()
    expect(user.questions).to_have_text(["Hello"])
    user.answers.first.get_by_role("button", name="Earlier version").click()
    expect(user.questions).to_have_text(["Hello", "Go on"])
    assert user.complaints == []


def test_stop_keeps_the_old_version(desk: Desk) -> None:
    user = desk.tab()
    say(user, "One")
    user.ask("Hello")
    say(user, "")  # stopped before a word came
    user.page.evaluate("inpage.held = true; inpage.isSilent = true")
    user.page.get_by_role("button", name="Regenerate").click()
    expect(user.stop).to_be_visible()
    user.stop.click()
    expect(user.answers.last).to_contain_text("One to Hello")
    expect(which(user.answers.last)).to_be_hidden()
    user.page.evaluate("inpage.isSilent = false")
    say(user, "Half")
    user.page.get_by_role("button", name="Regenerate").click()
    expect(user.answers.last).to_contain_text("Half")
    user.page.keyboard.press("Escape")
    expect(which(user.answers.last)).to_have_text("2/2")
    user.answers.last.get_by_role("button", name="Earlier version").click()
    expect(user.answers.last).to_contain_text("One to Hello")


def test_an_edited_question_is_a_branch_and_the_draft_survives(desk: Desk) -> None:
    user = desk.tab()
    for question in ("First", "Second"):
        user.ask(question)
    user.composer.fill("half a thought")
    user.questions.first.get_by_role("button", name="Edit").click()
    expect(user.composer).to_have_value("First")
    user.page.keyboard.press("Escape")
    expect(user.composer).to_have_value("half a thought")
    user.questions.first.get_by_role("button", name="Edit").click()
    expect(user.page.locator("#editing")).to_be_visible()
    user.ask("Other")
    expect(user.questions).to_have_text([re.compile("Other")])
    expect(user.composer).to_have_value("half a thought")
    expect(which(user.questions.first)).to_have_text("2/2")
    user.questions.first.get_by_role("button", name="Earlier version").click()
    expect(user.questions).to_have_count(2)
    assert path(user)[0::2] == ["First", "Second"]
    assert user.complaints == []


def test_drafts_belong_to_their_chats(desk: Desk) -> None:
    user = desk.tab()
    user.ask("One")
    user.composer.fill("for the first")
    user.new_chat()
    expect(user.composer).to_have_value("")
    user.composer.fill("for a new one")
    user.page.get_by_role("button", name="One", exact=True).click()
    expect(user.composer).to_have_value("for the first")
    user.page.reload()
    desk.ready(user)
    expect(user.composer).to_have_value("for the first")
    user.new_chat()
    expect(user.composer).to_have_value("for a new one")


def test_a_deleted_version_goes_with_its_branch_and_comes_back(desk: Desk) -> None:
    user = desk.tab()
    say(user, "One")
    user.ask("Hello")
    user.ask("After one")
    user.questions.first.get_by_role("button", name="Edit").click()
    expect(user.page.locator("#editing")).to_be_visible()
    user.ask("Bye")
    user.questions.first.get_by_role("button", name="Delete").click()
    expect(user.questions).to_have_text([re.compile("Hello"), re.compile("After one")])
    expect(which(user.questions.first)).to_be_hidden()
    user.notices.get_by_role("button", name="Undo").click()
    expect(user.questions).to_have_text([re.compile("Bye")])
    expect(which(user.questions.first)).to_have_text("2/2")
    until_kept(user, "After one", "to Bye")


def test_an_answer_that_was_cut_can_be_continued(desk: Desk) -> None:
    user = desk.tab()
    user.page.evaluate("inpage.finish = 'length'")
    answer = user.ask("Count")
    user.page.evaluate("inpage.finish = 'stop'")
    say(user, " and more")
    answer.get_by_role("button", name="Continue").click()
    expect(user.answered()).to_contain_text("An answer to Count and more")
    expect(user.answers).to_have_count(1)
    expect(answer.get_by_role("button", name="Continue")).to_be_hidden()
    sent = user.page.evaluate("inpage.asked")
    assert sent["continue_final_message"] is True
    assert [each["role"] for each in sent["messages"]] == ["user", "assistant"]


# ---- two tabs


@pytest.mark.parametrize(
    "script", ["", pytest.param(DEAF, marks=pytest.mark.thorough)], ids=["hearing", "deaf"]
)
def test_versions_of_both_tabs_are_kept(desk: Desk, script: str) -> None:
    first = desk.tab(script=script)
    say(first, "Zero")
    first.ask("Hello")
    second = desk.tab(script=script)
    expect(second.answers).to_have_count(1)
    first.come_to_front()
    regenerate(first, "One")
    if script != DEAF:  # what is heard takes an old version's place, and that of its buttons
        expect(second.answers.last).to_contain_text("One to Hello")
    second.come_to_front()
    regenerate(second, "Two")
    if script != DEAF:
        expect(first.answers.last).to_contain_text("Two to Hello")
    first.come_to_front()
    first.questions.first.get_by_role("button", name="Edit").click()
    expect(first.page.locator("#editing")).to_be_visible()
    first.ask("Edited")
    until_kept(first, "One to Hello", "Two to Hello", "to Edited")
    second.come_to_front()
    second.page.reload()
    desk.ready(second)
    expect(second.questions).to_have_text([re.compile("Edited")])
    second.questions.first.get_by_role("button", name="Earlier version").click()
    expect(second.answers.last).to_contain_text("Two")
    expect(which(second.answers.last)).to_have_text("3/3")
    assert second.complaints == []


@pytest.mark.thorough
def test_a_question_that_is_sent_while_another_tab_regenerates_is_shown(desk: Desk) -> None:
    first = desk.tab(script=DEAF)
    say(first, "Zero")
    first.ask("Hello")
    until_kept(first, "Zero to Hello")
    second = desk.tab(script=DEAF)
    expect(second.answers).to_have_count(1)
    first.come_to_front()
    regenerate(first, "One")
    until_kept(first, "One to Hello")
    second.come_to_front()
    second.ask("Goes on")  # from the version that the other tab shows no more
    until_kept(second, "to Goes on", "One to Hello")
    for user in (second, first):
        user.come_to_front()
        user.page.reload()
        desk.ready(user)
        expect(user.questions).to_have_text(["Hello", "Goes on"])
        expect(user.answers.first).to_contain_text("Zero to Hello")
        expect(which(user.answers.first)).to_have_text("1/2")
    first.answers.first.get_by_role("button", name="Later version").click()
    expect(first.questions).to_have_text(["Hello"])
    expect(first.answers).to_have_text([re.compile("One to Hello")])
    assert first.complaints == second.complaints == []


@pytest.mark.thorough
def test_a_version_that_was_deleted_in_one_tab_stays_so(desk: Desk) -> None:
    first = desk.tab(script=DEAF)
    say(first, "Zero")
    first.ask("Hello")
    regenerate(first, "One")
    second = desk.tab(script=DEAF)
    expect(which(second.answers.last)).to_have_text("2/2")
    first.come_to_front()
    first.answers.last.get_by_role("button", name="Delete").click()
    expect(first.answers.last).to_contain_text("Zero")
    second.come_to_front()
    second.ask("Goes on")  # from the version that is gone
    until_kept(second, "to Goes on")
    second.page.reload()
    desk.ready(second)
    assert path(second)[0::2] == ["Hello", "Goes on"]
    assert path(second)[1].startswith("Zero")
    assert "One to Hello" not in str(second.records()), "a deleted text is not kept"


# ---- chats of earlier versions of the page


def test_chats_of_version_2_are_read_and_gone_on_with(desk: Desk) -> None:
    def message(name: str, born: int, role: str) -> dict[str, Any]:
        return {"id": name, "born": born, "version": 3, "role": role, "content": name}

    roles = ("user", "assistant", "user", "assistant")
    record = {
        **{"id": "two", "title": "", "system": "", "set": {"title": 0, "system": 0}},
        **{"updated": 5, "deleted": 0, "gone": ["b2"], "stamp": "x", "version": 2},
        "messages": [message(f"m{at}", at + 1, role) for at, role in enumerate(roles)],
    }
    user = desk.tab()
    user.page.evaluate(PUT, record)
    user.page.reload()
    desk.ready(user)
    user.page.get_by_role("button", name="m0", exact=True).click()
    expect(user.answers).to_have_text([re.compile("m1"), re.compile("m3")])
    assert path(user) == ["m0", "m1", "m2", "m3"]
    user.questions.first.get_by_role("button", name="Edit").click()
    expect(user.page.locator("#editing")).to_be_visible()
    user.ask("Else")
    user.questions.first.get_by_role("button", name="Earlier version").click()
    expect(user.questions).to_have_count(2)
    assert path(user) == ["m0", "m1", "m2", "m3"]
    until(user.page, lambda: all(each["version"] > 2 for each in user.records()), "it is kept")
    assert user.complaints == []


ODD_TREES: list[list[dict[str, Any]]] = [
    [{"id": "a", "parent": "a", "slot": "a"}],
    [{"id": "a", "parent": "b"}, {"id": "b", "parent": "a"}],
    [{"id": "a", "parent": "nowhere"}, {"id": "b", "parent": 7, "slot": [], "picked": "x"}],
    [{"id": "a", "gone": 1, "parent": "b"}, {"id": "b", "gone": 1, "parent": "a"}, {"id": "c"}],
]


def test_no_tree_keeps_a_chat_from_being_shown(desk: Desk) -> None:
    user = desk.tab()
    plain = {"role": "user", "content": "here"}
    for tree in ODD_TREES:
        user.import_chats({"messages": [{**plain, **message} for message in tree]})
        there = [message for message in tree if not message.get("gone")]
        expect(user.questions).to_have_count(len(there))
    long = [{**plain, "content": f"{at}"} for at in range(3000)]
    user.import_chats({"messages": long})
    expect(user.questions).to_have_count(3000)
    assert user.complaints == []
