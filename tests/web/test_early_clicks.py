"""Clicks in the conversation that come before the script they are for: none is lost."""

import pytest
from playwright.sync_api import Route, expect

from tests.web.user import STAND_IN, Desk, User, until

pytestmark = pytest.mark.browser

READ_CLIPBOARD = "navigator.clipboard.readText()"


@pytest.fixture
def held() -> list[Route]:
    """Requests for turns.js, which are not answered."""
    return []


@pytest.fixture
def early(desk: Desk, held: list[Route]) -> User:
    """A page with a chat of an earlier visit, which still waits for all that comes later."""
    user = desk.tab()
    user.ask("First")
    until(user.page, lambda: "2 tokens" in str(user.records()), "the answer is kept")
    user.page.route("**/ui/later.js", lambda route: None)
    user.page.route("**/ui/turns.js", lambda route: held.append(route))
    user.page.reload()
    user.has_opened()
    user.page.evaluate(STAND_IN)
    return user


def release(user: User, held: list[Route]) -> None:
    until(user.page, lambda: held, "turns.js is asked for")
    held.pop().continue_()


def test_buttons_of_messages_are_heard(early: User, held: list[Route]) -> None:
    early.questions.get_by_role("button", name="Edit").click()
    early.answers.get_by_role("button", name="Regenerate").click()
    expect(early.answers.last).to_contain_text("An answer to First")
    assert early.composer.input_value() == ""
    release(early, held)
    expect(early.composer).to_have_value("First")
    expect(early.answers.locator(".which")).to_have_text("2/2")
    early.page.get_by_role("button", name="Cancel").click()
    expect(early.composer).to_have_value("")
    early.answers.get_by_role("button", name="Copy as text").click()
    early.page.wait_for_function(f"() => {READ_CLIPBOARD}.then((text) => text.endsWith('First'))")
    assert early.complaints == []


def test_examples_are_heard(early: User, held: list[Route]) -> None:
    early.new_chat()
    example = early.page.get_by_role("region", name="Example prompts").get_by_role("button").first
    words = example.inner_text()
    example.click()
    release(early, held)
    expect(early.questions).to_have_text(words)
    assert early.complaints == []
