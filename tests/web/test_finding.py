"""Chats are found, pinned, exported and imported; files are dropped; keys do what the list says."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.web.user import STAND_IN, Desk, User, until

pytestmark = pytest.mark.browser

CHATS: list[dict[str, Any]] = [
    {"title": "Penguins", "messages": [{"role": "user", "content": "Where do they live?"}]},
    {
        "title": "Cooking: soup/№ 1",
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "How long?"},
            {"role": "assistant", "content": "<think>Hm</think>\n\nAn *hour*, $x^2$."},
        ],
    },
    {"title": "Verne", "messages": [{"role": "user", "content": "Who was Captain NEMO?"}]},
]


@pytest.fixture(scope="module")
def tab(browser: Browser, toy_site_url: str) -> Iterator[User]:
    desk = Desk(browser, toy_site_url)
    # Voices of this machine, and of elsewhere, as browsers have them.
    user = desk.tab(
        script="""
        globalThis.said = [];
        speechSynthesis.getVoices = () => [
            {name: "away", lang: "en-US", localService: false},
            {name: "here", lang: "en-GB", localService: true},
        ];
        globalThis.SpeechSynthesisUtterance = class { constructor(text) { this.text = text; } };
        speechSynthesis.speak = ({text, voice}) => said.push([text, voice.name]);
        globalThis.recognisers = 0;
        globalThis.SpeechRecognition = class {
            static asked = [];
            static answer = "unavailable";
            static async available({processLocally}) {
                this.asked.push(processLocally);
                return this.answer;
            }
            constructor() { recognisers++; }
            start() {
                globalThis.isLocal = this.processLocally;
                this.onstart();
                const heard = Object.assign([{transcript: " by voice "}], {isFinal: true});
                this.onresult({results: [heard], resultIndex: 0});
            }
            stop() { this.onend(); }
        };
        """
    )
    user.import_chats(*CHATS)
    expect(rows(user)).to_have_count(3)
    yield user
    assert user.complaints == []
    desk.context.close()


# The words that the page marks in a message.
MARKED = """() => CSS.highlights.get("found")?.values().next().value.toString()"""


def rows(user: User) -> Locator:
    return user.page.locator("#chats .open:visible")


# ---- finding


def test_chats_are_found_by_their_words(tab: User) -> None:
    field = tab.page.get_by_label("Search chats")
    field.fill("nemo")
    expect(rows(tab)).to_have_text(["VerneWho was Captain NEMO?"])
    expect(rows(tab).locator("mark")).to_have_text("NEMO")
    rows(tab).click()
    expect(tab.questions).to_have_text(["Who was Captain NEMO?"])
    tab.page.wait_for_function(MARKED)
    assert tab.page.evaluate(MARKED) == "NEMO"
    field.fill("PENGUIN")
    expect(rows(tab)).to_have_text(["Penguins"])
    field.fill("nowhere")
    expect(tab.page.get_by_text("No results")).to_be_visible()
    field.fill("")
    expect(rows(tab)).to_have_count(3)


def test_chats_stand_under_their_dates(tab: User) -> None:
    expect(tab.page.locator("#chats .when")).to_have_text(["Today"])
    tab.page.evaluate("""async () => {
        const {allChats} = await import("/ui/chats.js");
        const [first, second] = allChats();
        globalThis.dates = [first.updated, second.updated];
        first.updated = new Date().setHours(0, 0, 0, 0) - 1000;
        second.updated = new Date(2020, 4, 17).getTime();
        dispatchEvent(new Event("chatschange"));
    }""")
    month = tab.page.evaluate(
        """new Date(2020, 4, 17).toLocaleDateString(undefined, {month: "long", year: "numeric"})"""
    )
    expect(tab.page.locator("#chats .when")).to_have_text(["Today", "Yesterday", month])


def test_a_pinned_chat_stays_on_top(tab: User) -> None:
    lowest = rows(tab).last.inner_text()
    rows(tab).last.click()
    tab.choose_in_menu("Pin")
    expect(rows(tab).first).to_have_text(lowest)
    expect(tab.page.locator("#chats .when").first).to_have_text("Pinned")
    tab.page.reload()
    tab.has_opened()
    tab.page.evaluate(STAND_IN)
    expect(rows(tab).first).to_have_text(lowest)
    tab.choose_in_menu("Unpin")
    expect(tab.page.get_by_text("Pinned")).to_have_count(0)


def test_chats_stand_in_folders(tab: User) -> None:
    rows(tab).filter(has_text="Verne").click()
    tab.choose_in_menu("Folder…")
    tab.page.get_by_label("Name of the folder").fill("Novels")
    assert tab.faults_of_access() == []
    tab.page.get_by_role("button", name="Move").click()
    expect(tab.page.locator("#chats .when").first).to_have_text("Novels")
    expect(rows(tab).first).to_have_text("Verne")
    until(tab.page, lambda: "Novels" in str(tab.records()), "the folder is kept")


def test_a_temporary_chat_is_not_kept(tab: User) -> None:
    tab.page.get_by_role("button", name="Temporary chat").click()
    expect(tab.page.get_by_text("This chat is temporary")).to_be_visible()
    tab.composer.fill("a secret thought")
    tab.ask("A secret")
    expect(tab.page.locator("#chats .when").first).to_have_text("Temporary")
    rows(tab).filter(has_text="Verne").click()
    tab.ask("Kept")
    until(tab.page, lambda: "Kept" in str(tab.records()), "another chat is kept")
    assert "secret" not in str(tab.records())
    assert "secret" not in tab.page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}])"
    )
    tab.page.reload()
    tab.has_opened()
    tab.page.evaluate(STAND_IN)
    expect(tab.page.get_by_text("A secret")).to_have_count(0)


def test_a_hidden_list_stays_hidden(tab: User) -> None:
    toggle = tab.page.locator("#toggleSidebar")
    toggle.click()
    tab.page.locator("#chatTitle").focus()
    tab.page.keyboard.press("Alt+n")
    expect(tab.page.locator("#sidebar")).to_be_hidden()
    tab.page.reload()
    tab.has_opened()
    tab.page.evaluate(STAND_IN)
    expect(tab.page.locator("#sidebar")).to_be_hidden()
    toggle.click()
    expect(tab.page.locator("#sidebar")).to_be_visible()


def test_an_address_brings_a_question(tab: User) -> None:
    tab.page.goto(f"{tab.url}?q=What+is+12+%C3%97+12%3F")
    tab.has_opened()
    tab.page.evaluate(STAND_IN)
    expect(tab.composer).to_have_value("What is 12 × 12?")
    expect(tab.questions).to_have_count(0)
    expect(tab.page).to_have_url(tab.url)
    tab.composer.fill("")


def test_running_and_waiting_chats_differ(tab: User) -> None:
    tab.page.evaluate("inpage.held = true")
    for title in ("Penguins", "Verne"):
        rows(tab).filter(has_text=title).click()
        tab.composer.fill("Go on")
        tab.composer.press("Enter")
    marks = tab.page.locator("#chats .mark:visible")
    expect(marks).to_have_count(2)
    expect(tab.page.locator("#chats .mark.waits:visible")).to_have_attribute(
        "aria-label", "Waiting for its answer"
    )
    tab.page.evaluate("inpage.held = false")
    expect(marks).to_have_count(0)


# ---- files


def test_exports_carry_the_chats_name(tab: User) -> None:
    rows(tab).filter(has_text="Cooking").click()
    with tab.page.expect_download() as download:
        tab.choose_in_menu("Export as Markdown")
    assert download.value.suggested_filename == "Cooking-soup-1.md"
    assert download.value.path().read_text() == (
        "# Cooking: soup/№ 1\n\n> Be brief.\n\n## You\n\nHow long?\n\n"
        "## Answer\n\nAn *hour*, $x^2$.\n"
    )
    with tab.page.expect_download() as download:
        tab.choose_in_menu("Export")
    assert download.value.suggested_filename == "Cooking-soup-1.json"


def test_an_exported_file_takes_no_memory_for_long(tab: User) -> None:
    tab.page.evaluate("""async () => {
        const {patience} = await import("/ui/chat_files.js");
        patience.file = 0;
        globalThis.addresses = new Set();
        const {createObjectURL, revokeObjectURL} = URL;
        URL.createObjectURL = (blob) => {
            const address = createObjectURL(blob);
            addresses.add(address);
            return address;
        };
        URL.revokeObjectURL = (address) => { addresses.delete(address); revokeObjectURL(address); };
    }""")
    for name in ("Export as Markdown", "Export"):
        tab.exported(name)
        tab.page.wait_for_function("() => !addresses.size")


def test_a_dropped_export_is_imported(tab: User) -> None:
    export = {
        "format": "inpage-chats",
        "version": 1,
        "chats": [{"title": "Dropped", "messages": [{"role": "user", "content": "Hello"}]}],
    }
    tab.drop({"chats.json": json.dumps(export, indent=1).encode()})
    expect(rows(tab).filter(has_text="Dropped")).to_have_count(1)
    expect(tab.questions).to_have_text(["Hello"])
    expect(tab.page.locator("#opened")).to_be_hidden()


def test_dropped_texts_are_attached_to_the_message(tab: User) -> None:
    tab.drop({"notes.csv": b"a,b\n1,2\n", "odd.md": b"```js\n1\n```"})
    attached = tab.page.get_by_role("list", name="Attached to the message")
    expect(attached.get_by_role("listitem")).to_have_text(
        ["notes.csv · 8 bytes · 1 token", "odd.md · 11 bytes · 1 token"]
    )
    assert tab.faults_of_access() == []
    attached.get_by_role("button", name="Remove odd.md").click()
    tab.ask("Sum it up")
    expect(tab.questions.last.locator(".text")).to_have_text("Sum it up")
    expect(tab.questions.last.locator(".file")).to_have_text("notes.csv · 8 bytes · 1 token")
    expect(attached.get_by_role("listitem")).to_have_count(0)


def test_what_is_too_long_says_so(tab: User) -> None:
    tab.page.evaluate("inpage.countTokens = async () => ({prompt_tokens: 5300})")
    tab.drop({"long.txt": b"` " * 300_000})
    row = tab.page.locator("#attached li")
    expect(row).to_have_text("long.txt · 600 kB · 5,300 tokens, too long")
    row.get_by_role("button", name="Remove").click()
    tab.page.evaluate("inpage.countTokens = async () => ({prompt_tokens: 1})")


def test_other_files_are_named_with_what_can_be_dropped(tab: User) -> None:
    tab.drop({"cat.bmp": b"\0BM"})
    expect(tab.notices).to_contain_text("cat.bmp cannot be attached. You can drop models")
    tab.drop({"empty.txt": b" "})
    expect(tab.notices).to_contain_text("empty.txt is empty.")
    tab.drop({"big.log": b"x" * 5_100_000})
    expect(tab.notices).to_contain_text("big.log is too large to attach: it has 5.1 MB")
    tab.dismiss_notices()


def test_a_drop_zone_shows_while_files_are_dragged(tab: User) -> None:
    zone = tab.page.locator("#dropZone")
    tab.drop({"notes.txt": b"x"}, event="dragenter")
    expect(zone).to_be_visible()
    tab.drop({"notes.txt": b"x"}, event="dragleave")
    expect(zone).to_be_hidden()


# ---- copying, listening


def test_an_answer_is_copied_as_text(tab: User) -> None:
    rows(tab).filter(has_text="Cooking").click()
    expect(tab.answers.locator("[data-drawn]")).to_have_count(1)
    tab.answers.last.get_by_role("button", name="Copy as text").click()
    expect(tab.notices).to_contain_text("Copied.")
    assert tab.page.evaluate("navigator.clipboard.readText()") == "An hour, x^2."
    tab.dismiss_notices()


def test_an_answer_is_read_aloud_by_a_voice_of_this_machine(tab: User) -> None:
    tab.answers.last.get_by_role("button", name="Read aloud").click()
    tab.page.wait_for_function("() => said.length")
    assert tab.page.evaluate("said") == [["An hour, x^2.", "here"]]


def test_dictation_asks_nothing_of_the_browser_before_it_is_wanted(tab: User) -> None:
    button, draft = tab.page.get_by_role("button", name="Dictate"), tab.page.locator("#draft")
    assert tab.page.evaluate("SpeechRecognition.asked") == []
    asking = tab.page.get_by_role("dialog", name="Let your browser send what you say to its maker?")
    button.click()
    expect(asking).to_contain_text("to Google in Chrome")
    assert tab.faults_of_access() == []
    asking.get_by_role("button", name="Not now").click()
    expect(asking).to_be_hidden()
    assert tab.page.evaluate("recognisers") == 0
    tab.page.evaluate("SpeechRecognition.answer = 'available'")
    draft.fill("written")
    button.click()
    expect(draft).to_have_value("written by voice")
    expect(button).to_have_attribute("aria-pressed", "true")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    assert tab.page.evaluate("[SpeechRecognition.asked, recognisers]") == [[True, True], 1]
    assert tab.page.evaluate("isLocal")
    draft.fill("")


def test_what_is_said_goes_to_the_browsers_maker_once_that_is_allowed(tab: User) -> None:
    button, draft = tab.page.get_by_role("button", name="Dictate"), tab.page.locator("#draft")
    tab.page.evaluate("SpeechRecognition.answer = 'unavailable'")
    for is_asked in (True, False):
        button.click()
        if is_asked:
            tab.page.get_by_role("button", name="Allow and dictate").click()
        expect(draft).to_have_value("by voice")
        assert not tab.page.evaluate("isLocal")
        button.click()
        expect(button).to_have_attribute("aria-pressed", "false")
        draft.fill("")


# ---- the way back


def test_there_is_a_way_to_the_latest(tab: User) -> None:
    latest = tab.page.get_by_role("button", name="Jump to the latest")
    expect(latest).to_be_hidden()
    tab.import_chats({"messages": [{"role": "user", "content": "line\n" * 200}]})
    scroller = tab.page.locator("#scroller")
    expect(tab.questions.last).to_contain_text("line")
    expect(latest).to_be_hidden()
    scroller.hover()
    tab.page.mouse.wheel(0, -5000)
    latest.click()
    expect(latest).to_be_hidden()
    left = "it => it.scrollHeight - it.scrollTop - it.clientHeight"
    until(tab.page, lambda: scroller.evaluate(left) < 2, "the end is in sight")
    tab.dismiss_notices()


# ---- keys


def test_keys_do_what_their_list_says(tab: User) -> None:
    tab.composer.press("Alt+KeyN")
    expect(tab.page.get_by_label("Chat name")).to_have_value("New chat")
    tab.composer.press("Alt+ArrowDown")
    expect(rows(tab).first).to_have_attribute("aria-current", "true")
    tab.composer.press("Alt+ArrowDown")
    expect(rows(tab).nth(1)).to_have_attribute("aria-current", "true")
    tab.composer.press("Alt+ArrowUp")
    expect(rows(tab).first).to_have_attribute("aria-current", "true")
    tab.composer.press("Control+k")
    expect(tab.page.get_by_label("Search chats")).to_be_focused()
    tab.page.locator("#scroller").focus()
    tab.page.keyboard.press("/")
    expect(tab.composer).to_be_focused()
    tab.composer.press("Alt+KeyB")
    expect(tab.page.locator("#sidebar")).to_be_hidden()
    tab.composer.press("Alt+KeyB")
    expect(tab.page.locator("#sidebar")).to_be_visible()


def test_the_list_of_keys_opens_where_nobody_types(tab: User) -> None:
    dialog = tab.page.get_by_role("dialog", name="Keyboard shortcuts")
    tab.composer.press("?")
    expect(tab.composer).to_have_value("?")
    tab.composer.fill("")
    tab.page.locator("#scroller").focus()
    tab.page.keyboard.press("?")
    expect(dialog).to_be_visible()
    assert tab.faults_of_access() == []
    tab.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
