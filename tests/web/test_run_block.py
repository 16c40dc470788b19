"""Code of answers, run below the answer: apart from the chats, the engine and the network."""

import json

import pytest
from playwright.sync_api import Locator, expect

from tests.web.user import Desk, User, chat_of, until
from tests.web.ways_out import NAMES, WAYS_OUT, Host

pytestmark = pytest.mark.browser

IN_BLOCK = """
import js, sys
from pyodide.ffi import to_js
code = js.Blob.new(to_js([%r]))
js.importScripts(js.URL.createObjectURL(code))
outcome = await js.outcome
print("engine", "py_runtime.app.in_page" in sys.modules, "inpage_bridge" in sys.modules)
print(outcome)
"""
IN_PLAIN_WORKER = """code => new Promise(yes => {
    const all = [code, "outcome.then(postMessage)"];
    const worker = new Worker(URL.createObjectURL(new Blob(all)));
    worker.onmessage = ({data}) => yes(JSON.parse(data));
})"""


@pytest.fixture(scope="module")
def user(open_desk: Desk) -> User:
    """Return a page whose model is a stand-in: only the code of answers has a Python."""
    return open_desk.tab()


def block_of(user: User, code: str) -> Locator:
    """Import a chat whose answer has this code, and return the answer."""
    user.import_chats(chat_of("Write code", f"Here:\n\n```python\n{code}\n```"))
    return user.answers.last


def run(answer: Locator) -> Locator:
    answer.get_by_role("button", name="Run ▸").click()
    return answer.get_by_role("log")


def test_a_block_runs_below_itself_and_its_result_goes_to_the_model(user: User) -> None:
    answer = block_of(user, "print('seen')\nplot.bars({'a': 1}, title='Drawn')")
    output = run(answer)
    expect(output.get_by_role("img", name="Drawn")).to_be_visible()
    expect(output).to_contain_text("seen")
    answer.get_by_role("button", name="Send the result to the model").click()
    expect(user.questions.last).to_contain_text("I ran the code. The result:")
    expect(user.questions.last).to_contain_text("seen")
    user.answered()
    answer = block_of(user, "1 / 0")
    expect(run(answer)).to_contain_text("ZeroDivisionError")


def test_it_reaches_nothing(user: User, host: Host) -> None:
    """The same ways all lead out of a page that forbids nothing."""
    plain = user.page.context.new_page()
    plain.goto(host.url)
    open_ways = WAYS_OUT.replace("ADDRESSES", json.dumps([host.url]))
    reached = plain.evaluate(IN_PLAIN_WORKER, open_ways)["reached"]
    plain.close()
    assert host.asked >= set(NAMES)
    assert {"chats", "files", "caches", f"{host.url}request", f"{host.url}fetch"} <= set(reached)

    host.asked.clear()
    user.page.evaluate("""() => {
        globalThis.heard = [];
        new BroadcastChannel("open").onmessage = ({data}) => heard.push(data);
    }""")
    ways = WAYS_OUT.replace("ADDRESSES", json.dumps([host.url, user.url]))
    output = run(block_of(user, IN_BLOCK % ways))
    expect(output).to_contain_text("origin")
    engine, outcome = output.inner_text().strip().splitlines()
    assert engine == "engine False False"
    found = json.loads(outcome)
    assert (found["reached"], found["found"], found["origin"]) == ([], [], "null")
    assert host.asked == set()
    for address in (host.url, user.url):  # the policy did it, not the server's answer
        for name in NAMES[:3]:
            assert f"{address}{name}" in [url.replace("ws:", "http:") for url in found["blocked"]]
    user.page.evaluate("new BroadcastChannel('open').postMessage('the page')")
    until(user.page, lambda: user.page.evaluate("heard.length"), "the page hears itself")
    assert user.page.evaluate("heard") == ["the page"]


def test_a_loop_is_stopped(user: User) -> None:
    """Compare tests/web/test_tools.py, where one ends by itself after a while."""
    answer = block_of(user, "print('begins')\nwhile True: pass")
    expect(run(answer)).to_contain_text("begins")
    answer.get_by_role("button", name="Stop", exact=True).click()
    expect(answer.get_by_role("status")).to_have_text("Stopped.")


def test_only_python_has_the_button(user: User) -> None:
    user.import_chats(chat_of("Write code", "```js\n1\n```\n\n```\n2\n```"))
    expect(user.answers.last.get_by_role("button", name="Copy", exact=True).first).to_be_visible()
    expect(user.answers.last.get_by_role("button", name="Run ▸")).to_have_count(0)
