"""Searched files: their vectors stay with the chat; folders, and summaries in parts."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.web.user import Desk, User, until

pytestmark = pytest.mark.browser

# A token for each character, in a context of a thousand; the engine's side of documents, in short.
ENGINE = """() => {
    inpage.loaded.quantisation = "q4gsw";
    inpage.countTokens = async messages => ({
        prompt_tokens: messages.reduce((sum, {content}) => sum + content.length, 0),
    });
    const documents = new Map();
    globalThis.opened = [];
    inpage.call = async (name, {action, fields}, {signal}) => {
        const {ids} = fields;
        if (action === "open") {
            documents.set(ids[0], {...fields, done: fields.vectors ? 4 : 0});
            opened.push({...fields, text: undefined});
            return {};
        }
        const missing = ids.filter(id => !documents.has(id));
        if (missing.length) return {missing};
        const found = documents.get(ids[0]);
        const place = (start, end, line) =>
            ({search: ids[0], name: found.names?.[0] ?? found.name, unit: "line", first: line,
              last: line, label: `${found.names?.[0] ?? found.name}, line ${line}`, start, end});
        if (action === "search") return {passages: [place(0, 10, 1)]};
        if (action === "parts") return {parts: [place(0, 600, 1), place(600, 1200, 2)]};
        if (globalThis.isStuck && found.done) await new Promise((_, reject) => {
            signal.addEventListener("abort", () => reject(new Error("aborted")));
        });
        found.done += 2;
        const vectors = {model: inpage.loaded.name, is_encoder: false, base64: btoa("12345678")};
        return {done: found.done, total: 4, ...found.done >= 4 && {vectors}};
    };
}"""
SUMMARIES = """() => {
    globalThis.parts = [];
    const stream = inpage.chat.completions.create;
    inpage.chat.completions.create = request => {
        if (request.stream) return stream(request);
        parts.push(request.messages.at(-1).content);
        if (parts.length === globalThis.hangsAt) return new Promise((_, reject) => {
            const aborted = () => reject(Object.assign(new Error("aborted"), {code: "aborted"}));
            request.signal.addEventListener("abort", aborted);
        });
        const message = {content: `summary ${parts.length}`};
        return Promise.resolve({choices: [{message}]});
    };
}"""
IMPATIENT = """() => import(new URL("ui/notices.js", document.baseURI))
    .then(({patience}) => { patience.undo = 1; })"""
VECTORS = """() => new Promise((resolve, reject) => {
    const opening = indexedDB.open("inpage-documents", 1);
    opening.onerror = () => reject(opening.error);
    opening.onupgradeneeded = () => opening.result.createObjectStore("vectors", {keyPath: "id"});
    opening.onsuccess = () => {
        const all = opening.result.transaction("vectors").objectStore("vectors").getAll();
        all.onsuccess = () => {
            opening.result.close();
            resolve(all.result.map(({bytes}) => String.fromCharCode(...bytes)));
        };
    };
})"""
# A folder as a drop has it.
DROP_FOLDER = """files => {
    const entryOf = (path, content) => ({
        isDirectory: false, fullPath: path,
        file: resolve => resolve(new File([Uint8Array.from(content)], path.split("/").at(-1))),
    });
    const folderOf = path => ({
        isDirectory: true, fullPath: path, name: path.split("/").at(-1),
        createReader() {
            const below = Object.keys(files).filter(each => each.startsWith(`${path}/`));
            const names = new Set(below.map(each => each.slice(path.length + 1).split("/")[0]));
            const entries = [...names].map(name => `${path}/${name}`)
                .map(each => files[each] ? entryOf(each, files[each]) : folderOf(each));
            return {readEntries: resolve => resolve(entries.splice(0, 2))};
        },
    });
    const event = new Event("drop", {bubbles: true, cancelable: true});
    const items = [{webkitGetAsEntry: () => folderOf("/project")}];
    event.dataTransfer = {files: [new File([], "project")], items, types: ["Files"]};
    document.querySelector("#draft").dispatchEvent(event);
}"""
LONG = b"Words of a long file.\n" * 60


@pytest.fixture(scope="module")
def opened(browser: Browser, toy_site_url: str) -> Iterator[User]:
    desk = Desk(browser, toy_site_url)
    user = desk.tab()
    user.page.evaluate(ENGINE)
    yield user
    assert user.complaints == []
    desk.context.close()


@pytest.fixture
def tab(opened: User) -> User:
    opened.new_chat()
    return opened


def ask_about(user: User, way: str, name: str = "long.txt", content: bytes = LONG) -> None:
    """Ask about a file that does not fit, in one of the ways that are offered then."""
    user.drop({name: content})
    user.composer.fill("What is it?")
    expect(user.page.locator("#attached li")).to_contain_text(" tokens")
    user.composer.press("Enter")
    user.page.locator("#tooLong").get_by_role("button", name=way).click()
    expect(user.page.locator("#tooLong")).to_be_hidden()
    user.composer.press("Enter")
    expect(user.composer).to_have_value("")


SEARCH = "Search long.txt for each question"


def test_ways_are_offered_and_searching_is_the_first(tab: User) -> None:
    tab.drop({"long.txt": LONG})
    tab.composer.fill("What is it?")
    expect(tab.page.locator("#attached li")).to_contain_text(" tokens")
    tab.composer.press("Enter")
    offers = tab.page.locator("#tooLong").get_by_role("button")
    expect(offers).to_have_count(4)
    words = offers.all_inner_texts()
    assert words[0] == SEARCH
    assert words[1].startswith("Use the first ")
    assert words[2:] == ["Summarise long.txt in parts", "Remove long.txt"]
    tab.page.get_by_role("button", name="Remove long.txt").first.click()
    tab.composer.fill("")


def test_what_is_learnt_is_kept_and_goes_with_the_chat(desk: Desk) -> None:
    user = desk.tab()
    user.page.evaluate(ENGINE)
    ask_about(user, SEARCH)
    user.answered()
    expect(user.answers.locator(".quotes button")).to_contain_text("long.txt · line 1")
    until(user.page, lambda: user.page.evaluate(VECTORS) == ["12345678"], "the vectors are kept")
    expect(user.page.locator("#notices .learning")).to_have_count(0)
    user.page.reload()
    desk.ready(user)
    user.page.evaluate(ENGINE)
    expect(user.answers.locator(".quotes button")).to_contain_text("long.txt · line 1")
    assert user.faults_of_access() == []
    user.ask("And now?")
    (given,) = user.page.evaluate("opened")
    assert given["vectors"]["base64"] == "MTIzNDU2Nzg=", "they are not made again"
    user.page.evaluate(IMPATIENT)
    user.choose_in_menu("Delete")
    until(user.page, lambda: user.page.evaluate(VECTORS) == [], "nothing of it is kept")
    assert user.complaints == []


STORED_ENCODER = """async () => {
    localStorage.inpageEncoder = "local:small";
    const own = {name: "Stand-in", path: "models/own", stored: false, messages: [], size: 1e6};
    const encoder = {name: "small", path: "local:small", stored: true, messages: [], size: 1e7};
    inpage.stored = async () => [];
    inpage.models = async () => [own, encoder];
    globalThis.loads = [];
    inpage.load = async (where, {keep}) => {
        loads.push([where, keep]);
        if (globalThis.isFull) throw new Error("there is no room for it");
        inpage.loaded = {...inpage.loaded}; // as the engine tells of the model that answers
        return {name: "small", is_encoder: true};
    };
    await (await import("/ui/models/models.js")).listModels();
}"""


def test_an_encoder_that_is_stored_is_loaded_to_search_by(desk: Desk) -> None:
    """Beside the model that answers, and once."""
    user = desk.tab()
    user.page.evaluate(ENGINE)
    user.page.evaluate(STORED_ENCODER)
    ask_about(user, SEARCH)
    user.answered()
    user.ask("And now?")
    expect(user.answers.last.locator(".quotes button")).to_contain_text("long.txt · line 1")
    assert user.page.evaluate("loads") == [["local:small", True]]
    user.page.evaluate("() => { inpage.loaded = {...inpage.loaded}; }")  # another load
    user.page.evaluate("() => { globalThis.isFull = true; }")
    for question in ("And then?", "And at last?"):
        user.ask(question)
        expect(user.answers.last.locator(".quotes button")).to_contain_text("long.txt · line 1")
    assert user.page.evaluate("loads") == [["local:small", True]] * 2, "it is not tried again"
    assert user.complaints == []


def test_learning_can_be_cancelled(tab: User) -> None:
    tab.page.evaluate("globalThis.isStuck = true")
    ask_about(tab, SEARCH)
    tab.answered()
    line = tab.page.locator("#notices .learning")
    expect(line).to_contain_text("Indexing long.txt")
    shown = "bar => [bar.value, bar.max]"
    progress = line.locator("progress")
    until(tab.page, lambda: progress.evaluate(shown) == [2, 4], "half of it is learnt")
    before = tab.page.evaluate(VECTORS)
    line.get_by_role("button", name="Cancel").click()
    expect(line).to_have_count(0)
    assert tab.page.evaluate(VECTORS) == before
    tab.page.evaluate("globalThis.isStuck = false")
    tab.ask("Once more")
    expect(tab.answers.last.locator(".quotes button")).to_have_count(1)
    expect(line).to_have_count(0)


def test_a_full_disk_says_what_is_lost(desk: Desk) -> None:
    user = desk.tab()
    user.page.evaluate(ENGINE)
    user.page.evaluate("""() => {
        const {put} = IDBObjectStore.prototype;
        IDBObjectStore.prototype.put = function (value) {
            if (this.name === "vectors") throw new DOMException("", "QuotaExceededError");
            return put.call(this, value);
        };
    }""")
    ask_about(user, SEARCH)
    user.answered()
    expect(user.notices).to_contain_text("The index of long.txt was not stored: this browser")


def test_a_file_is_summarised_in_parts(desk: Desk) -> None:
    user = desk.tab()
    user.page.evaluate(ENGINE)
    user.page.evaluate(SUMMARIES)
    user.page.evaluate("globalThis.hangsAt = 2")
    ask_about(user, "Summarise long.txt in parts")
    expect(user.answers.locator(".note")).to_have_text("Summarising part 2 of 2…")
    user.stop.click()
    expect(user.answers.locator(".note")).to_have_text("Stopped")
    user.page.evaluate("parts.length = 0; hangsAt = 0")
    user.regenerate()
    summary = user.answers.locator(".quotes summary")
    expect(summary).to_have_text("Based on summaries of all 2 parts")
    quotes = user.answers.locator(".quotes button")
    expect(quotes).to_have_text(["1long.txt · line 1summary 1", "2long.txt · line 2summary 2"])
    assert len(user.page.evaluate("parts")) == 2
    read: str = user.page.evaluate("inpage.asked.messages.at(-1).content")
    assert read.startswith("[1] long.txt, line 1:\n\n```text\nsummary 1\n```")
    assert read.endswith("What is it?")
    assert user.complaints == []


def test_a_folder_is_attached_without_what_is_not_its_own(tab: User) -> None:
    files = {
        "/project/src/main.js": b"let herons = 3;\n",
        "/project/README.md": b"# Project\n",
        "/project/node_modules/other/index.js": b"let stones;\n",
        "/project/.git/HEAD": b"ref\n",
        "/project/logo.png": b"\x89PNG\x00\xff",
    }
    tab.page.evaluate(DROP_FOLDER, {path: list(content) for path, content in files.items()})
    chip = tab.page.locator("#attached li")
    expect(chip).to_contain_text("project · 2 files")
    expect(tab.notices).to_contain_text("1 file in project is left out")
    chip.get_by_role("button", name="project · 2 files").click()
    dialog = tab.page.get_by_role("dialog", name="project")
    expect(dialog.locator("h3")).to_have_text(["README.md", "src/main.js"])
    tab.page.keyboard.press("Escape")
    tab.ask("What is in it?")
    assert tab.page.evaluate("inpage.asked.messages.at(-1).content") == (
        "README.md:\n\n```md\n# Project\n```\n\nsrc/main.js:\n\n```js\nlet herons = 3;\n```"
        "\n\nWhat is in it?"
    )
    tab.dismiss_notices()


def test_hostile_sources_are_read_with_care(tab: User) -> None:
    passage = {"search": "x", "name": "<b>", "unit": "page", "label": "a", "text": "<img>"}
    sources = {"text": "found", "passages": [passage, 5, {"name": {}}, None], "inParts": "many"}
    question = {"role": "user", "content": "Q", "sources": sources}
    answer = {"role": "assistant", "content": "A", "made": {"searched": 1}, "settings": {}}
    tab.import_chats({"messages": [question, answer], "version": 6})
    quote = tab.answers.locator(".quotes button")
    expect(quote).to_have_text("1<b> · page 0<img>")
    expect(quote).to_be_disabled()
    chat: Any = json.loads(tab.exported("Export").read_text())["chats"][0]
    assert len(chat["messages"][0]["sources"]["passages"]) == 1
    tab.dismiss_notices()
