"""Code of answers, run below the answer: apart from the chats, the engine and the network."""

import json

import pytest
from playwright.sync_api import Locator, expect

from tests.web.user import User, chat_of

pytestmark = pytest.mark.browser

# Everything that could reach out of there, and what became of it.
ESCAPES = """
import js
from pyodide.code import run_js
tries = {
    "file": "fetch('ADDRESSsite.json').then(r => r.ok ? r.status : Promise.reject())",
    "fetch": "new Promise((yes, no) => { const code = `fetch('ADDRESS').then("
             " () => postMessage(1), () => postMessage(0))`;"
             " const w = new Worker(URL.createObjectURL(new Blob([code])));"
             " w.onmessage = ({data}) => data ? yes('answered') : no('refused'); })",
    "socket": "new Promise((yes, no) => { const s = new WebSocket('ws://127.0.0.1:9');"
              " s.onopen = () => yes('open'); s.onerror = () => no('refused'); })",
    "request": "new Promise((yes, no) => { const r = new XMLHttpRequest();"
               " r.open('GET', 'ADDRESS'); r.onload = () => yes(r.status);"
               " r.onerror = () => no('refused'); r.send(); })",
    "import": "import('ADDRESSapp.js')",
    "indexedDB": "new Promise((yes, no) => { const r = indexedDB.open('inpage');"
                 " r.onsuccess = () => yes('open'); r.onerror = () => no('refused'); })",
    "opfs": "navigator.storage.getDirectory()",
    "caches": "caches.keys()",
    "worker": "new Promise((yes, no) => { const w = new Worker('ADDRESSworker.js');"
              " w.onmessage = () => yes('runs'); w.onerror = () => no('refused'); })",
}
for name, code in tries.items():
    try:
        found = await run_js(f"(async () => {code})()")
        print(name, "REACHED", found)
    except BaseException:
        print(name, "refused")
print("origin", js.self.origin)
import sys
print("engine", "py_runtime.app.in_page" in sys.modules)
"""


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


def test_it_reaches_nothing(user: User) -> None:
    output = run(block_of(user, ESCAPES.replace("ADDRESS", user.url)))
    expect(output).to_contain_text("engine")
    lines = dict(line.split(" ", 1) for line in output.inner_text().splitlines() if line)
    assert lines.pop("origin") == "null"
    assert lines.pop("engine") == "False"
    assert set(lines.values()) == {"refused"}, json.dumps(lines)
    assert len(lines) == 9


def test_a_loop_is_stopped_and_ends_by_itself_after_a_while(user: User) -> None:
    answer = block_of(user, "print('begins')\nwhile True: pass")
    expect(run(answer)).to_contain_text("begins")
    answer.get_by_role("button", name="Stop", exact=True).click()
    expect(answer.get_by_role("status")).to_have_text("Stopped.")
    user.page.evaluate("""import("/ui/notebook/run_block.js").then(({patience}) => {
        patience.code = 100;
    })""")
    expect(run(answer)).to_contain_text("begins")
    expect(answer.get_by_role("status")).to_have_text("Stopped.")


def test_only_python_has_the_button(user: User) -> None:
    user.import_chats(chat_of("Write code", "```js\n1\n```\n\n```\n2\n```"))
    expect(user.answers.last.get_by_role("button", name="Copy", exact=True).first).to_be_visible()
    expect(user.answers.last.get_by_role("button", name="Run ▸")).to_have_count(0)
