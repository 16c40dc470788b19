"""The GPU or the room to keep things goes away while something is kept: the chat goes on."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.toy_model import NAME
from tests.web.user import User, until

pytestmark = pytest.mark.browser

QUESTION = "Tell me of the fox"
A_SHARD = "**/weights-00003-of-*"
UNFINISHED = ("partial-", "begun-")
# The device goes while the question, a part of the answer, and all of it are being saved.
LOSE_WHILE_SAVING = """() => {
    const {put} = IDBObjectStore.prototype;
    globalThis.kinds = [];
    globalThis.losses = [];
    inpage.onNotice(({kind}) => kinds.push(kind));
    IDBObjectStore.prototype.put = function (record, ...others) {
        const {role, content, note} = record.messages.at(-1) ?? {};
        const isWritten = note?.[0]?.code !== "answer_interrupted";
        const stage = !content ? "question" : isWritten ? "whole" : "part";
        if (role === "assistant" && !losses.includes(stage)) {
            losses.push(stage);
            inpage.python("from inpage_bridge import bridge; bridge.device().destroy()");
        }
        return put.call(this, record, ...others);
    };
}"""
ENTRIES = """async () => {
    const names = [];
    const folder = await navigator.storage.getDirectory();
    for await (const [name, entry] of folder.entries()) {
        if (entry.kind === "file") names.push(name);
        else for await (const inner of entry.keys()) names.push(inner);
    }
    return names;
}"""


@pytest.fixture
def gpu_user(browser: Browser, gpu_toy_site_url: str) -> Iterator[User]:
    """Open a page on the GPU, which can be lost."""
    context = browser.new_context()
    user = User(context.new_page(), gpu_toy_site_url)
    user.open()
    user.load()
    user.talk_on()
    yield user
    context.close()


def kept_answer(user: User) -> str:
    """Return the last answer, as this browser keeps it."""
    (chat,) = [each for each in user.records() if each["messages"]]
    answer: str = chat["messages"][-1]["content"]
    return answer


@pytest.mark.thorough  # on the GPU, which is replaced with all its kernels
def test_a_device_that_is_lost_while_a_chat_is_saved(gpu_user: User) -> None:
    user = gpu_user
    user.choose(max_tokens="60", temperature="0")
    expected = user.text_of(user.ask(QUESTION))
    user.choose_in_menu("Delete")
    user.pause_answers()
    user.page.evaluate(LOSE_WHILE_SAVING)
    user.composer.fill(QUESTION)
    user.composer.press("Enter")
    user.page.wait_for_function("() => losses.includes('part')")
    user.let_answers_go_on()
    assert user.text_of(user.answered()) == expected
    user.page.wait_for_function("() => losses.includes('whole')")
    until(user.page, lambda: kept_answer(user) == expected, "the whole answer is kept")
    expect(user.answers.last.locator(".error")).to_be_empty()
    user.new_chat()
    assert user.text_of(user.ask(QUESTION)) == expected
    assert user.page.evaluate("losses") == ["question", "part", "whole"]
    assert user.page.evaluate("kinds").count("recovered") > 1
    assert user.complaints == []


@pytest.mark.thorough  # folder/test_loading.py has the engine
def test_storage_that_fills_up_during_a_download(user: User) -> None:
    page, quota = user.page, {"origin": user.url.rstrip("/")}
    session = page.context.new_cdp_session(page)
    page.evaluate(f"inpage.unload().then(() => inpage.deleteStored('{NAME}'))")
    held: list[Route] = []
    page.route(A_SHARD, lambda route: held.append(route))
    user.load_button.click()
    until(page, lambda: held, "a file of the weights is asked for")
    session.send("Storage.overrideQuotaForOrigin", {**quota, "quotaSize": 1})
    for route in held:
        route.continue_()
    page.unroute(A_SHARD)
    user.has_loaded()
    expect(user.notices).to_contain_text(f"This browser's storage refused a file of {NAME}")
    expect(user.notices).to_contain_text("the model stays in memory")
    user.new_chat()
    assert user.text_of(user.ask(QUESTION))
    assert [name for name in page.evaluate(ENTRIES) if name.startswith(UNFINISHED)] == []
    assert [kept["complete"] for kept in page.evaluate("inpage.stored()")] in ([], [False])
    session.send("Storage.overrideQuotaForOrigin", quota)
    page.evaluate(f"inpage.load('{NAME}').then(() => null)")
    assert [kept["complete"] for kept in page.evaluate("inpage.stored()")] == [True]
    until(page, lambda: QUESTION in str(user.records()), "the chat is kept once there is room")
    assert user.complaints == []
