"""A user of the page: does what people do, by the names that people see."""

import base64
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.runners import PATIENCE
from tools.files import ROOT

LOOK_AGAIN = 50  # milliseconds
PAUSE_AFTER_TOKENS = 40
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
# However slow the test looks: it finds what the page said, and its Undo.
NOTICES_STAY = """async () => {
    const {patience} = await import(new URL("ui/notices.js", document.baseURI));
    Object.assign(patience, {notice: 1e9, undo: 1e9});
}"""
# However fast the model writes and however slow the test looks: it finds the answer half-written.
PAUSE = f"""
import asyncio
going_on, write = asyncio.Event(), type(model)._generate

async def write_with_a_pause(prompt, options, cancel, *others):
    cancel.on_cancel(going_on.set)
    tokens = 0
    async for piece in write(model, prompt, options, cancel, *others):
        yield piece
        tokens += len(piece.token_ids)
        if tokens > {PAUSE_AFTER_TOKENS}:
            await going_on.wait()

model._generate = write_with_a_pause
"""
BE_PATIENT = """async (bounds) => {
    const {patience} = await import(new URL("client.js", document.baseURI));
    Object.assign(patience, bounds);
}"""
# As if the settings' dialog had been open; its script and the clicks in it take half a second.
PREFER = """async (chosen) => {
    const {fields, keep} = await import(new URL("ui/settings/settings.js", document.baseURI));
    for (const [name, value] of chosen) fields.find((field) => field.name === name).value = value;
    keep("inpageSettings", JSON.stringify({version: 1, chosen}));
}"""
DROP = """([files, type]) => {
    const transfer = new DataTransfer();
    for (const [name, base64] of files) {
        const bytes = Uint8Array.from(atob(base64), letter => letter.charCodeAt(0));
        transfer.items.add(new File([bytes], name));
    }
    const options = {dataTransfer: transfer, bubbles: true, cancelable: true};
    document.querySelector("#draft").dispatchEvent(new DragEvent(type, options));
}"""
STORED = """() => new Promise((resolve, reject) => {
    const opening = indexedDB.open("inpage");
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
        const all = opening.result.transaction("chats").objectStore("chats").getAll();
        all.onsuccess = () => { opening.result.close(); resolve(all.result); };
    };
})"""
FILES = """async () => {
    const database = await (await import("/ui/chat_storage.js")).connect();
    return database.getAll("files");
}"""
# A tab that hears nothing of others: frozen in the background, say.
DEAF = "globalThis.BroadcastChannel = class { postMessage() {} addEventListener() {} }"
# What the page does every five seconds, or after as many, it does soon.
IN_HASTE = """{
    const own = setTimeout;
    globalThis.setTimeout = (then, delay, ...given) =>
        own(then, delay === 5000 ? 250 : delay, ...given);
}"""
CLOCK = """() => {
    let looks = 0;
    performance.now = Object.assign(() => NOW, {before: performance.now});
}"""
STANDS_STILL, TICKS_WHEN_LOOKED_AT = "0", "100 * ++looks"


def until(page: Page, condition: Callable[[], object], what: str) -> None:
    """Wait for something that `expect` cannot see; `what` says what is waited for."""
    overdue = time.monotonic() + PATIENCE / 1000
    while not condition():
        assert time.monotonic() < overdue, f"not within {PATIENCE // 1000} s: {what}"
        page.wait_for_timeout(LOOK_AGAIN)


@contextmanager
def clock(page: Page, now: str) -> Iterator[None]:
    """However fast this machine is: what the page's clock shows, given how often it was asked."""
    page.evaluate(CLOCK.replace("NOW", now))
    yield
    page.evaluate("() => { performance.now = performance.now.before; }")


def chat_of(*texts: str, **fields: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    return {"messages": messages, **fields}


def keep_from_loading_stored(target: Page | BrowserContext) -> None:
    """Have what this browser keeps loaded where a test says so, and not by the page on arrival."""
    function = "export function loadStored() {"
    path = "ui/models/models.js"
    script = (ROOT / "web" / path).read_text()
    assert function in script
    body = script.replace(function, f"{function} expectNone(); return;")
    target.route(
        f"**/{path}", lambda route: route.fulfill(body=body, content_type="text/javascript")
    )


class User:
    def __init__(self, page: Page, url: str) -> None:
        page.set_default_timeout(PATIENCE)
        self.page = page
        self.url = url
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.composer = page.get_by_label("Message", exact=True)
        self.questions = page.get_by_role("article", name="You")
        self.answers = page.get_by_role("article", name="Answer")
        self.titles = page.locator("#chats .open")
        self.notices = page.locator("#notices")
        self.stop = page.get_by_role("button", name="Stop")
        self.send = page.get_by_role("button", name="Send", exact=True)
        self.load_button = page.get_by_role("button", name="Start chatting")

    def open(self) -> None:
        """Open the page, started as far as it goes without loading a model."""
        self.page.goto(self.url)
        expect(self.load_button).to_be_enabled()
        self.has_opened()

    def has_opened(self) -> None:
        """Wait for the chat of the last visit; then the button knows if the list is shown."""
        expect(self.page.locator("#toggleSidebar")).to_have_attribute(
            "aria-expanded", re.compile("true|false")
        )
        self.page.evaluate(NOTICES_STAY)

    def come_to_front(self) -> None:
        """Bring a tab to the front: one behind another may draw one frame a second."""
        self.page.bring_to_front()

    def load(self) -> None:
        self.load_button.click()
        self.has_loaded()

    def has_loaded(self) -> None:
        """Wait for a model, also one that is loaded on arrival because this browser keeps it."""
        expect(self.page.locator("body")).to_have_attribute("data-model", "ready")

    def ask(self, question: str) -> Locator:
        """Send the question and wait for the whole answer."""
        self.composer.fill(question)
        self.composer.press("Enter")
        expect(self.composer).not_to_have_value(
            question
        )  # sent: near the context's limit, after a count
        return self.answered()

    def answered(self) -> Locator:
        expect(self.stop).to_be_hidden()
        return self.answers.last

    def regenerate(self) -> Locator:
        """Another version of the last answer, whole."""
        old = self.answers.last.get_attribute("data-id")
        self.answers.last.get_by_role("button", name="Regenerate").click()
        expect(self.answers.last).not_to_have_attribute("data-id", old or "")
        return self.answered()

    def text_of(self, message: Locator) -> str:
        return message.locator(".text").inner_text()

    def choose(self, **settings: str) -> None:
        """Change settings in their dialog, by the names that a request gives them."""
        self.page.locator("header [data-opens=settings]").click()
        for name, value in settings.items():
            field = self.page.locator(f"#settings [name={name}], #settings #{name}")
            field.evaluate("field => { (field.closest('details') ?? {}).open = true; }")
            if field.evaluate("field => field.localName") == "select":
                field.select_option(value)
            else:
                field.fill(value)
        self.page.get_by_role("button", name="Done").click()

    def prefer(self, **settings: str) -> None:
        """Set what no setting was chosen for yet; `choose` does as people do, by the dialog."""
        self.page.evaluate(PREFER, list(settings.items()))

    def choose_language(self, name: str) -> None:
        """Choose a language by ids, or the browser's own by "": the words around are another's."""
        self.page.locator("header [data-opens=settings]").click()
        self.page.locator("#language").select_option(name)
        expect(self.page.locator("html")).to_have_attribute("lang", re.compile(f"^{name}"))
        self.page.keyboard.press("Escape")

    def talk_on(self) -> None:
        """Keep the toy from ending answers by itself."""
        self.page.evaluate("""() => {
            const {completions} = inpage.chat;
            const create = completions.create;
            completions.create = request => create({...request, ignore_eos: true});
        }""")

    def pause_answers(self) -> None:
        """Pause answers after a few words, until they are stopped or let go on."""
        self.page.evaluate("code => inpage.python(code)", PAUSE)

    def let_answers_go_on(self) -> None:
        self.page.evaluate("inpage.python('going_on.set()')")

    def be_patient(self, **bounds: int) -> None:
        """Set the page's `patience` (web/client.js) with Python that does not answer."""
        self.page.evaluate(BE_PATIENT, bounds)

    def new_chat(self) -> None:
        self.page.get_by_role("button", name="New chat").click()

    def dismiss_notices(self) -> None:
        while self.notices.locator("button.icon").count():
            self.notices.locator("button.icon").first.click()

    def faults_of_access(self) -> list[str]:
        """Return what axe-core calls serious or critical in the page as it is now."""
        if not self.page.evaluate("'axe' in globalThis"):
            # Not a script element: the page's policy takes none but its own.
            self.page.evaluate(f"() => {{ {AXE.read_text()}\n; globalThis.axe = axe; }}")
        found: list[dict[str, Any]] = self.page.evaluate(
            "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"
        )
        return [
            f"{fault['id']}: {fault['help']}: {fault['nodes'][0]['html'][:120]}"
            for fault in found
            if fault["impact"] in ("serious", "critical")
        ]

    def choose_in_menu(self, item: str) -> None:
        """Choose an item of the menu of the open chat."""
        self.page.get_by_role("button", name="More about this chat").click()
        self.page.get_by_role("menuitem", name=item, exact=True).click()

    def exported(self, button: str) -> Path:
        """Export all chats by their button, or the open one by its menu."""
        with self.page.expect_download() as download:
            if button == "Export all":
                self.page.get_by_role("button", name=button).click()
            else:
                self.choose_in_menu(button)
        return download.value.path()

    def import_text(self, text: str, name: str = "chats.json") -> None:
        file = {"name": name, "mimeType": "application/json", "buffer": text.encode()}
        self.page.locator("#importFile").set_input_files(file)  # type: ignore[arg-type]

    def import_chats(self, *chats: Any, **fields: Any) -> None:
        export = {"format": "inpage-chats", "version": 1, "chats": chats, **fields}
        self.import_text(json.dumps(export))

    def records(self) -> list[dict[str, Any]]:
        """Return the chats as this browser keeps them."""
        found: list[dict[str, Any]] = self.page.evaluate(STORED)
        return found

    def kept_files(self) -> Any:
        """Return the texts of attached files, which have records of their own."""
        return self.page.evaluate(FILES)

    def drop(self, files: dict[str, bytes], event: str = "drop") -> None:
        """Files by their names, dropped; or dragged so far."""
        encoded = [[name, base64.b64encode(data).decode()] for name, data in files.items()]
        self.page.evaluate(DROP, [encoded, event])


class Desk:
    """Tabs of one browser, which share what it keeps; a stand-in for the model answers."""

    def __init__(self, browser: Browser, url: str) -> None:
        self.context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
        self.context.add_init_script(IDLE_WORKER)
        self.url = url
        self.blank: Page | None = None

    def clear(self) -> None:
        """Back to nothing open and nothing kept: cheaper than another context."""
        self.blank = self.context.new_page()
        for page in self.context.pages:
            if page is not self.blank:
                page.close()
        everything = {"origin": self.url.rstrip("/"), "storageTypes": "all"}
        session = self.context.new_cdp_session(self.blank)
        session.send("Storage.clearDataForOrigin", everything)
        session.detach()

    def tab(self, *, script: str = "") -> User:
        """Open a tab.

        The first one is the page of the last clearing, which has seen no site yet.
        """
        page, self.blank = self.blank or self.context.new_page(), None
        user = User(page, self.url)
        if script:
            user.page.add_init_script(script)
        user.page.goto(self.url)
        self.ready(user)
        return user

    def ready(self, user: User) -> None:
        """Wait for a page, also after a reload: what hears keys and drops comes last."""
        user.has_opened()
        user.page.wait_for_function("() => document.querySelector('#dictate').onclick !== null")
        user.page.evaluate(STAND_IN)


# Python's worker says nothing. Not by a route: that would have every request pass through the test.
IDLE_WORKER = """{
    const Own = Worker;
    globalThis.Worker = function (url, options) {
        if (!`${url}`.endsWith("/worker.js")) return new Own(url, options);
        return Object.assign(new EventTarget(), {postMessage() {}, terminate() {}});
    };
}"""
STAND_IN = """() => {
    const device = {kind: "gpu", threads: null};
    inpage.loaded = {name: "Stand-in", context: 1000, messages: [], device};
    document.body.dataset.model = "ready";
    inpage.countTokens = async () => ({prompt_tokens: 1});
    inpage.answer = "An answer";
    inpage.held = false;  // true: an answer pauses half-written
    inpage.isSilent = false;  // true: it says nothing at all
    inpage.finish = "stop";
    inpage.chat.completions.create = async function* ({messages, signal, ...asked}) {
        const chunk = (content, finish_reason = null) =>
            ({choices: [{delta: {content}, token_ids: [1], finish_reason}]});
        inpage.asked = {messages, ...asked};
        if (!inpage.isSilent) yield chunk(inpage.answer + " ");
        while (inpage.held && !signal.aborted) {
            await new Promise(resolve => setTimeout(resolve, 20));
        }
        const end = inpage.isSilent ? "" : `to ${messages.at(-1).content}`;
        yield chunk(end, inpage.finish);
        const stopped = {code: "answer_stopped", facts: {}};
        const tokens = {code: "answer_tokens", facts: {tokens: 2}};
        yield {choices: [], usage: {messages: [signal.aborted ? stopped : tokens]}};
    };
}"""
