"""The page speaks the browser's language, or the one that is chosen."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.web import wording
from tests.web.user import IDLE_WORKER, User

pytestmark = pytest.mark.browser

PLURAL = re.compile(r"\{\w+:([^|}]*)\|([^}]*)\}")
VALUE = re.compile(r"\\\{.+?\\\}")  # in a text that is escaped
DIALOGS = ("settings", "models", "shortcuts")
# What people read or hear, but for what models and users write.
SHOWN = """() => {
    const texts = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const {data, parentElement} = walker.currentNode;
        const theirs = "[dir=auto], [lang]:not(html), .text, code, pre, script";
        if (!parentElement.checkVisibility() || parentElement.closest(theirs)) continue;
        texts.push(data.replace(/\\s+/g, " ").trim());
    }
    for (const name of ["aria-label", "placeholder", "title"]) {
        for (const element of document.querySelectorAll(`[${name}]`)) {
            if (element.checkVisibility()) texts.push(element.getAttribute(name));
        }
    }
    return texts;
}"""
# A button whose words do not fit, or that sticks out of what it stands in.
CUT = """() => [...document.querySelectorAll("button, select, summary, label, h2, h3, th")]
    .filter(element => element.checkVisibility() && !element.closest(".sr, .skip"))
    .filter(element => element.scrollWidth > element.clientWidth + 1 && element.clientWidth
        || element.getBoundingClientRect().right
            > element.closest("aside, dialog, main").getBoundingClientRect().right + 1)
    .map(element => element.textContent || element.ariaLabel)"""


def english() -> re.Pattern[str]:
    """Return a pattern of what the page would say in English, and says otherwise in German."""
    english, german = wording.table("en")["messages"], wording.table("de")
    texts = [key for key, other in german["texts"].items() if key != other]
    messages = [text for code, text in english.items() if text != german["messages"][code]]
    forms = [form for key in texts for form in key.split("|")]
    forms += [PLURAL.sub(which, text) for text in messages for which in (r"\1", r"\2")]
    patterns = [VALUE.sub(".+", re.escape(form)) for form in forms]
    return re.compile("|".join(patterns))


ENGLISH = english()


def english_in(page: Page) -> list[str]:
    texts = [text for shown in page.evaluate(SHOWN) for text in shown.split(" · ")]
    return [text for text in texts if ENGLISH.fullmatch(text)]


# So that the time of an answer has parts, however fast this machine is.
A_MOMENT_LATER = """
import asyncio
write = type(model)._generate

async def write_later(*arguments):
    await asyncio.sleep(0.2)
    async for piece in write(model, *arguments):
        yield piece

model._generate = write_later
"""


@pytest.fixture(scope="module")
def german(browser: Browser, toy_site_url: str) -> Iterator[User]:
    """Open the page in a browser that wants German, with nothing loaded."""
    context = browser.new_context(locale="de-DE")
    user = User(context.new_page(), toy_site_url)
    user.page.goto(toy_site_url)
    expect(user.page.locator("#load")).to_be_enabled()
    user.has_opened()
    yield user
    context.close()


def test_a_german_browser_reads_german(german: User) -> None:
    expect(german.page.locator("html")).to_have_attribute("lang", "de-DE")
    expect(german.page.locator("#load")).to_have_text(
        re.compile(r"^Chat starten \([\d,]+ [kM]B Download\)$")
    )
    expect(german.page.locator("#status")).to_have_text(re.compile(r"^Bereit nach \d+,\d s\.$"))
    expect(german.page.locator("#chatTitle")).to_have_value("Neuer Chat")
    assert english_in(german.page) == []


def test_a_chat_in_german(german: User) -> None:
    page = german.page
    page.locator("#load").click()
    german.has_loaded()
    german.talk_on()
    page.evaluate("code => inpage.python(code)", A_MOMENT_LATER)
    page.evaluate("document.querySelector('[name=max_tokens]').value = 4")
    page.locator("#draft").fill("Hello")
    page.locator("#draft").press("Enter")
    note = page.locator("#messages .note")
    expect(note).to_have_text(re.compile(r"^Höchstlänge erreicht · 4 Tokens · \d+,\d s \("))
    expect(note).to_have_text(re.compile(r"\d,\d (Vorbereitung|Lesen|Schreiben)"))
    expect(page.locator("#contextText")).to_have_text(
        re.compile(r"^Kontext: \d+ von [\d.]+ Tokens$")
    )
    expect(page.locator("#chats .when")).to_have_text("Heute")
    assert english_in(page) == []
    german.dismiss_notices()


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("dialog", DIALOGS)
def test_dialogs_in_german(german: User, dialog: str, width: int) -> None:
    page = german.page
    page.set_viewport_size({"width": width, "height": 740})
    sideways = "() => document.scrollingElement.scrollWidth > innerWidth"
    assert page.evaluate(CUT) == [], f"{width} pixels wide"
    if dialog == "shortcuts":
        page.locator("#scroller").press("?")
    else:
        page.evaluate(f"document.querySelector('[data-opens={dialog}]').click()")
    expect(page.locator(f"dialog#{dialog}")).to_be_visible()
    assert english_in(page) == []
    assert page.evaluate(CUT) == [], f"{width} pixels wide"
    assert not page.evaluate(sideways)
    assert german.faults_of_access() == []
    page.keyboard.press("Escape")


def test_another_language_is_chosen_at_once_and_kept(german: User) -> None:
    page = german.page
    page.set_viewport_size({"width": 1280, "height": 740})
    german.choose_language("en")
    expect(page.locator("html")).to_have_attribute("lang", "en")
    expect(page.locator("#draft")).to_have_attribute("placeholder", "Ask anything")
    expect(page.locator("#messages .note")).to_have_text(
        re.compile(r"^Maximum length reached · 4 tokens")
    )
    expect(page.locator("#contextText")).to_have_text(
        re.compile(r"^Context: \d+ of [\d,]+ tokens$")
    )
    expect(page.locator("#status")).to_have_text(re.compile(r"^Ready in \d+\.\d s\.$"))
    expect(page.get_by_role("article", name="Answer")).to_be_visible()
    page.reload()
    german.has_opened()
    expect(page.locator("#newChat")).to_have_text("New chat")
    german.choose_language("")
    expect(page.locator("#newChat")).to_have_text("Neuer Chat")
    expect(page.locator("html")).to_have_attribute("lang", "de-DE")
    assert page.evaluate("localStorage.inpageLanguage") is None
    german.has_loaded()
    assert english_in(page) == []
    assert german.complaints == []


def test_words_that_do_not_arrive_leave_english(browser: Browser, toy_site_url: str) -> None:
    context = browser.new_context(locale="de-AT")
    context.add_init_script(IDLE_WORKER)
    user = User(context.new_page(), toy_site_url)
    asked: list[Route] = []
    user.page.route("**/languages/de.js*", lambda route: asked.append(route))
    with user.page.expect_request("**/languages/de.js*"):
        user.page.goto(toy_site_url, wait_until="commit")
    expect(user.page.locator("html")).to_have_attribute("data-wording", "coming")
    expect(user.page.locator(".welcome h2")).to_be_hidden()
    user.page.route("**/languages/de.js*", lambda route: route.abort())  # asked once more
    asked[0].abort()
    expect(user.page.get_by_role("heading", name="A language model in this page")).to_be_visible()
    user.has_opened()
    expect(user.page.locator("html")).to_have_attribute("lang", "en")
    context.close()


def test_a_language_that_there_is_not_gives_the_next_one(
    browser: Browser, toy_site_url: str
) -> None:
    """Dates and numbers are of the country."""
    context = browser.new_context(locale="gsw")
    context.add_init_script(IDLE_WORKER)
    user = User(context.new_page(), toy_site_url)
    languages = "Object.defineProperty(navigator, 'languages', {get: () => ['gsw', 'de-CH', 'en']})"
    user.page.add_init_script(languages)
    user.page.goto(toy_site_url)
    expect(user.page.locator("html")).to_have_attribute("lang", "de-CH")
    expect(user.page.locator("#newChat")).to_have_text("Neuer Chat")
    context.close()
