"""Access for everyone, from a phone to a desktop, and which scripts that takes."""

import re
from collections.abc import Iterator
from typing import Literal

import pytest
from playwright.sync_api import Browser, expect

from tests.web.test_script_size import needed_scripts
from tests.web.user import IDLE_WORKER, Desk, User, chat_of, until
from tools.files import ROOT

pytestmark = pytest.mark.browser

# What a page on the CPU takes, too.
CPU_SCRIPTS = {"bridge/cpu.js", "bridge/cpu_worker.js"}
# What reads stored chats, shows an answer's Markdown and reads it aloud, and may suggest a model.
COMES_SOON = {"chat_reading", "markdown/html", "markdown/view", "markdown/reasoning"}
COMES_SOON |= {"json/block", "models/fit", "speech"}
LIBRARIES = {"dompurify.js", "idb.js", "marked.js"}  # that this takes; the others come when needed
SAMPLE = """# Heading

Text with **weight**, `code` and a [link](https://example.org/).

1. one
2. two

```python
print("a line that is rather longer than any telephone is wide, so that it has to scroll")
```

| a | b |
|---|--:|
| 1 | 2 |

> quoted
"""

CONVERSATION = {
    "messages": [
        {"role": "user", "content": "What is this?"},
        {"role": "assistant", "content": SAMPLE, "note": "12 tokens", "error": "It broke."},
    ]
}


def assert_accessible(user: User, *, state: str) -> None:
    for width in (1280, 360):
        user.page.set_viewport_size({"width": width, "height": 740})
        assert user.faults_of_access() == [], f"{state}, {width} pixels wide"
        sideways = "() => document.scrollingElement.scrollWidth > innerWidth"
        assert not user.page.evaluate(sideways), f"{state} scrolls sideways at {width} pixels"
    user.page.set_viewport_size({"width": 1280, "height": 740})


def assert_accessible_in_both_schemes(user: User, *, state: str) -> None:
    """Colours are the same at any width."""
    assert_accessible(user, state=state)
    user.page.emulate_media(color_scheme="dark")
    assert user.faults_of_access() == [], f"{state} in the dark"
    user.page.emulate_media(color_scheme=None)


def test_before_loading(fresh: User) -> None:
    assert_accessible_in_both_schemes(fresh, state="start")


@pytest.mark.parametrize("dialog", ["settings", "models"])
def test_dialogs(fresh: User, dialog: str) -> None:
    fresh.page.locator(f"[data-opens={dialog}]").first.click()
    expect(fresh.page.locator(f"dialog#{dialog}")).to_be_visible()
    assert_accessible_in_both_schemes(fresh, state=dialog)
    fresh.page.keyboard.press("Escape")


def test_a_conversation(fresh: User) -> None:
    fresh.import_chats(CONVERSATION)
    expect(fresh.answers.last).to_contain_text("quoted")
    # Until the script for such answers is here, long code scrolls without the keyboard.
    expect(fresh.answers.last.get_by_role("region", name="Table")).to_be_visible()
    assert_accessible_in_both_schemes(fresh, state="conversation")
    fresh.dismiss_notices()


def test_the_list_of_chats_on_a_phone(fresh: User) -> None:
    fresh.page.set_viewport_size({"width": 360, "height": 740})
    sidebar = fresh.page.get_by_role("complementary", name="Chats")
    toggle = fresh.page.get_by_role("button", name="Chats")
    expect(sidebar).to_be_hidden()
    toggle.click()
    expect(sidebar).to_be_visible()
    expect(fresh.page.get_by_role("button", name="New chat")).to_be_focused()
    scheme: Literal["light", "dark"]
    for scheme in ("light", "dark"):
        fresh.page.emulate_media(color_scheme=scheme)
        assert fresh.faults_of_access() == []
    fresh.page.emulate_media(color_scheme=None)
    fresh.page.keyboard.press("Escape")
    expect(sidebar).to_be_hidden()
    expect(toggle).to_be_focused()
    fresh.page.set_viewport_size({"width": 1280, "height": 740})


def test_loaded_and_empty(fresh: User) -> None:
    fresh.new_chat()
    fresh.load()
    assert_accessible_in_both_schemes(fresh, state="loaded")


def test_the_theme_can_be_chosen(fresh: User) -> None:
    ground = "() => getComputedStyle(document.body).backgroundColor"
    fresh.page.emulate_media(color_scheme="light")
    light = fresh.page.evaluate(ground)
    fresh.choose(theme="dark")
    until(fresh.page, lambda: fresh.page.evaluate(ground) != light, "it is dark")
    fresh.choose(theme="light")
    until(fresh.page, lambda: fresh.page.evaluate(ground) == light, "it is light again")
    fresh.page.get_by_role("button", name="Settings").last.click()
    fresh.page.get_by_role("button", name="Reset").click()
    expect(fresh.page.locator("#theme")).to_have_value("system")
    fresh.page.keyboard.press("Escape")


# Options whose text is wider than the field that shows it; those in groups are users' own texts.
CUT = """() => [...document.querySelectorAll("dialog[open] select")].flatMap(select => {
    const isCut = option => {
        const probe = select.cloneNode();
        probe.append(option.cloneNode(true));
        probe.style.cssText = "position: absolute; flex: none; width: auto; field-sizing: content";
        select.after(probe);
        const width = probe.offsetWidth;
        probe.remove();
        return width > select.offsetWidth;
    };
    return [...select.querySelectorAll(":scope > option")].filter(isCut).map(({text}) => text);
})"""


@pytest.mark.parametrize("language", ["en", "de"])
def test_no_choice_is_cut(fresh: User, language: str) -> None:
    fresh.choose_language(language)
    fresh.page.locator("[data-opens=settings]").first.click()
    fresh.page.locator("#advanced").evaluate("details => { details.open = true; }")
    expect(fresh.page.locator("dialog#settings select").last).to_be_visible()
    for width in (1280, 360):
        fresh.page.set_viewport_size({"width": width, "height": 740})
        assert fresh.page.evaluate(CUT) == [], f"{width} pixels wide"
    fresh.page.keyboard.press("Escape")
    fresh.page.set_viewport_size({"width": 1280, "height": 740})
    fresh.choose_language("")


def test_fingers_find_their_targets(browser: Browser, toy_site_url: str) -> None:
    """The worker of this phone never starts: the conversation is there without it."""
    context = browser.new_context(
        viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True
    )
    user = User(context.new_page(), toy_site_url)
    user.page.add_init_script(IDLE_WORKER)
    user.page.goto(toy_site_url)
    user.has_opened()
    user.import_chats(CONVERSATION)
    expect(user.answers.last).to_contain_text("quoted")
    small = """() => [...document.querySelectorAll("button, select, input, textarea, summary")]
        .filter(element => element.checkVisibility())
        .map(element => [element.id || element.ariaLabel, element.getBoundingClientRect()])
        .filter(([, {width, height}]) => width < 44 || height < 44)
        .map(([name, {width, height}]) => `${name} ${width} x ${height}`)"""
    assert user.page.evaluate(small) == []
    for opener, opened in (
        ("#toggleSidebar", "#sidebar"),
        ("#sidebar [data-opens=settings]", "dialog#settings"),
    ):
        user.page.locator(opener).click()
        expect(user.page.locator(opened)).to_be_visible()
        until(user.page, lambda: user.page.evaluate(small) == [], "all is large enough")
    context.close()


def test_phones_read_of_no_keys_and_no_dropping(browser: Browser, toy_site_url: str) -> None:
    context = browser.new_context(
        viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True
    )
    user = User(context.new_page(), toy_site_url)
    user.page.add_init_script(IDLE_WORKER)
    user.page.goto(toy_site_url)
    user.has_opened()
    for dialog in ("", "models", "settings"):
        if dialog:
            user.page.evaluate(f"document.querySelector('[data-opens={dialog}]').click()")
            expect(user.page.locator(f"dialog#{dialog}")).to_be_visible()
        expect(user.page.locator("kbd:visible")).to_have_count(0)
        words = user.page.locator(f"dialog#{dialog}" if dialog else "main").inner_text()
        assert not re.search("drop a model|dropping", words, re.IGNORECASE)
        user.page.keyboard.press("Escape")
    context.close()


# ---- what passes: nobody stays in these states, everybody sees them

SHOW_FAILURE = """kind => import("/ui/engine_status.js").then(({showFailure, showBusy}) => {
    showFailure({kind, message: "out of bounds"});
    showBusy(true);
})"""
SHOW_NOTICES = """() => import("/ui/notices.js").then(({notify}) => {
    document.querySelector("#newVersion").hidden = false;
    document.querySelector("#unkept").dataset.state = "away";
    notify("Told, and to be taken back", {undo() {}});
})"""


def waiting(user: User) -> None:
    user.page.evaluate("inpage.model = inpage.loaded; inpage.loaded = null")
    user.composer.fill("Waits")
    user.composer.press("Enter")
    expect(user.answers.last.locator(".note")).to_contain_text("Getting ready")


def streaming(user: User) -> None:
    user.page.evaluate("""() => {
        inpage.held = true;
        inpage.loaded = inpage.model;
        dispatchEvent(new Event("modelchange"));
    }""")
    expect(user.answers.last).to_contain_text("An answer")
    user.composer.fill("A draft meanwhile")


def versions(user: User) -> None:
    user.page.evaluate("inpage.held = false")
    user.composer.fill("")
    user.answered()
    user.regenerate()
    expect(user.answers.last.locator(".which")).to_have_text("2/2")
    user.questions.last.get_by_role("button", name="Edit").click()
    expect(user.page.locator("#editing")).to_be_visible()


def attaching(user: User) -> None:
    user.page.keyboard.press("Escape")
    user.drop({"notes.md": b"x"})
    expect(user.page.locator("#attached li")).to_have_count(1)
    user.drop({"notes.md": b"x"}, event="dragenter")
    expect(user.page.locator("#dropZone")).to_be_visible()


def telling(user: User) -> None:
    user.drop({"notes.md": b"x"}, event="dragleave")
    user.page.evaluate(SHOW_NOTICES)
    expect(user.notices.get_by_role("button", name="Undo")).to_be_visible()


def finding(user: User) -> None:
    # Where there are few, there is nothing to find them by.
    user.import_chats(*map(chat_of, ("One", "Two", "Three")))
    user.page.get_by_label("Search chats").fill("nowhere")
    expect(user.page.get_by_text("No results")).to_be_visible()


def failing(user: User) -> None:
    user.page.get_by_label("Search chats").fill("")
    user.page.evaluate(SHOW_FAILURE, "crashed")
    expect(user.page.get_by_role("heading", name="The engine stopped")).to_be_visible()


def test_states_that_pass(desk: Desk) -> None:
    user = desk.tab()
    for enter in (waiting, streaming, versions, attaching, telling, finding, failing):
        enter(user)
        assert_accessible_in_both_schemes(user, state=enter.__name__)
    assert user.complaints == []


# ---- which scripts that takes


@pytest.fixture(scope="module")
def chatted(browser: Browser, toy_site_url: str) -> Iterator[User]:
    """Load the model and chat in a first visit, and open nothing else."""
    context = browser.new_context()
    user = User(context.new_page(), toy_site_url)
    user.open()
    user.load()
    user.page.evaluate("document.querySelector('[name=max_tokens]').value = 4")
    expect(user.ask("Hello").locator(".note")).to_contain_text("tokens")
    yield user
    context.close()


def own_scripts(user: User) -> set[str]:
    """Files of web/ that were asked for until now, by the page and its worker."""
    paths = {url.removeprefix(user.url).partition("?")[0] for url in user.requests}
    return {path for path in paths if path.endswith(".js") and (ROOT / "web" / path).is_file()}


def test_starting_and_chatting_takes_few_more_scripts_than_the_page_begins_with(
    chatted: User,
) -> None:
    """Libraries that few answers need, dialogs and other languages come later."""
    begins_with = {path.relative_to(ROOT / "web").as_posix() for path in needed_scripts()}
    come_soon = {f"ui/{name}.js" for name in COMES_SOON}
    assert own_scripts(chatted) - begins_with - CPU_SCRIPTS <= come_soon
    assert begins_with <= own_scripts(chatted)
    vendored = {url.rpartition("/")[2] for url in chatted.requests if "/vendor/" in url}
    assert vendored <= LIBRARIES


def test_a_panel_that_does_not_arrive_is_told_and_opens_later(chatted: User) -> None:
    chatted.page.route("**/ui/panels/notebook.js", lambda route: route.abort())
    opener = chatted.page.get_by_role("button", name="Python")
    opener.click()
    expect(chatted.notices).to_contain_text("could not be loaded")
    expect(chatted.page.get_by_role("button", name="Run all")).to_be_hidden()
    chatted.page.unroute("**/ui/panels/notebook.js")
    chatted.dismiss_notices()
    opener.click()
    expect(chatted.page.get_by_role("button", name="Run all")).to_be_visible()
    expect(chatted.page.get_by_role("textbox", name="Code")).to_be_visible()
    chatted.page.get_by_role("tab", name="Notebook").press("Escape")
    expect(opener).to_be_focused()


def test_settings_open_once_the_site_answers(desk: Desk) -> None:
    """Requests that failed while the page started are made again."""
    user = desk.tab(
        script="""
        const {fetch} = globalThis;
        globalThis.isOnline = false;
        globalThis.fetch = (url, options) => isOnline || url !== "site.json"
            ? fetch(url, options) : Promise.reject(new TypeError("no network"));
        """
    )
    opener = user.page.locator("header [data-opens=settings]")
    opener.click()
    expect(user.notices).to_contain_text("could not be loaded")
    expect(user.page.locator("#settings")).to_be_hidden()
    user.page.evaluate("isOnline = true")
    user.dismiss_notices()
    opener.click()
    expect(user.page.locator("#settings")).to_be_visible()
    expect(user.page.locator("[name=top_k]")).not_to_have_value("")
    user.page.evaluate("isOnline = false")
    user.page.keyboard.press("Escape")
    opener.click()
    expect(user.page.locator("#settings")).to_be_visible()
    assert user.complaints == []


def test_the_panel_of_models_knows_what_happened_before_it_was_fetched(chatted: User) -> None:
    assert "ui/models/panel.js" not in own_scripts(chatted)
    chatted.page.locator("#modelChip").click()
    dialog = chatted.page.get_by_role("dialog", name="Models")
    expect(dialog).to_be_visible()
    expect(dialog.locator("#loadedName")).to_have_text("Toy")
    expect(dialog.locator("#loadedPlain")).to_contain_text("· stored in this browser")
    assert "ui/models/panel.js" in own_scripts(chatted)
    chatted.page.keyboard.press("Escape")


def test_what_is_exported_can_be_imported(chatted: User) -> None:
    exported = chatted.exported("Export all").read_text()
    chatted.new_chat()
    chatted.import_text(exported)
    expect(chatted.questions).to_have_text(["Hello"])
    assert chatted.complaints == []
