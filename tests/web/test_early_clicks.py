"""Clicks, texts and questions before the page has fully opened: none is lost."""

import pytest
from playwright.sync_api import Route, expect

from tests.web.user import IN_HASTE, STAND_IN, Desk, User, until

pytestmark = pytest.mark.browser

READ_CLIPBOARD = "navigator.clipboard.readText()"
# The database opens only once the test says so.
LATE_DATABASE = """{
    const {promise, resolve} = Promise.withResolvers();
    const listen = EventTarget.prototype.addEventListener;
    globalThis.openDatabase = resolve;
    IDBOpenDBRequest.prototype.addEventListener = function (type, listener) {
        listen.call(this, type, (event) => promise.then(() => listener.call(this, event)));
    };
}"""


@pytest.fixture
def held() -> list[Route]:
    """Hold requests that are not answered yet."""
    return []


def kept_chat(desk: Desk) -> User:
    """Return a tab whose only chat is stored."""
    user = desk.tab()
    user.ask("First")
    until(user.page, lambda: "answer_tokens" in str(user.records()), "the answer is kept")
    return user


@pytest.mark.parametrize("is_first_visit", [True, False], ids=["first visit", "later visit"])
def test_a_question_sent_before_the_page_has_opened_stays_on_screen(
    desk: Desk, held: list[Route], is_first_visit: bool
) -> None:
    user = User(desk.context.new_page(), desk.url) if is_first_visit else kept_chat(desk)
    user.page.route("**/dompurify.js", lambda route: held.append(route))
    user.page.goto(desk.url)
    until(user.page, lambda: held, "the page waits for its Markdown renderer")
    user.composer.fill("Early")
    user.composer.press("Enter")
    expect(user.questions).to_have_text(["Early"])
    held.pop().continue_()
    user.has_opened()
    expect(user.questions).to_have_text(["Early"])
    assert user.complaints == []


def test_an_example_that_is_asked_before_the_page_has_opened_is_sent(
    desk: Desk, held: list[Route]
) -> None:
    user = User(desk.context.new_page(), desk.url)
    user.page.route("**/dompurify.js", lambda route: held.append(route))
    user.page.goto(desk.url)
    until(user.page, lambda: held, "the page waits for its Markdown renderer")
    user.page.evaluate(STAND_IN)
    example = user.page.get_by_role("region", name="Example prompts").get_by_role("button").first
    words = example.inner_text()
    example.click()
    held.pop().continue_()
    user.has_opened()
    expect(user.questions).to_have_text(words)
    assert user.complaints == []


def test_buttons_of_messages_are_heard_as_soon_as_they_are_shown(desk: Desk) -> None:
    user = kept_chat(desk)
    user.page.reload()
    user.questions.get_by_role("button", name="Edit").click()
    expect(user.composer).to_have_value("First")
    user.page.evaluate(STAND_IN)
    user.answers.get_by_role("button", name="Regenerate").click()
    expect(user.answers.locator(".which")).to_have_text("2/2")
    user.page.get_by_role("button", name="Cancel").click()
    expect(user.composer).to_have_value("")
    expect(user.answers.last).to_contain_text("An answer to First")
    user.answers.get_by_role("button", name="Copy as text").click()
    user.page.wait_for_function(f"() => {READ_CLIPBOARD}.then((text) => text.endsWith('First'))")
    assert user.complaints == []


def test_text_typed_before_the_composer_has_its_script_stays(desk: Desk, held: list[Route]) -> None:
    user = desk.tab()
    user.composer.fill("an old draft")
    user.page.route("**/ui/composer.js", lambda route: held.append(route))
    user.page.reload(wait_until="commit")
    until(user.page, lambda: held, "the composer's script is asked for")
    user.composer.fill("typed early")
    held.pop().continue_()
    user.has_opened()
    expect(user.composer).to_have_value("typed early")


def test_the_last_chat_is_shown_when_the_database_opens_late(desk: Desk) -> None:
    user = kept_chat(desk)
    user.page.add_init_script(f"{IN_HASTE}\n{LATE_DATABASE}")
    user.page.reload()
    user.has_opened()
    expect(user.questions).to_have_count(0)
    user.page.evaluate("openDatabase()")
    expect(user.questions).to_have_text(["First"])
    assert user.complaints == []


def test_a_late_database_does_not_take_the_user_away_from_a_new_question(desk: Desk) -> None:
    user = kept_chat(desk)
    user.page.add_init_script(f"{IN_HASTE}\n{LATE_DATABASE}")
    user.page.reload()
    user.has_opened()
    user.composer.fill("Meanwhile")
    user.composer.press("Enter")
    user.page.evaluate("openDatabase()")
    expect(user.titles).to_have_text(["Meanwhile", "First"])
    expect(user.questions).to_have_text(["Meanwhile"])
    assert user.complaints == []
