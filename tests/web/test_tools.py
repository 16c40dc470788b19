"""Tools in the chat: what a model calls is asked for, run, shown, kept and read by the model."""

import json
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.web.test_documents import attach
from tests.web.user import Desk, User, until
from tests.web.ways_out import NAMES, WAYS_OUT, Host

pytestmark = pytest.mark.browser

# A stand-in for the model: what it says and calls in each round is `plan`, then it says "Done."
CALLER = """() => {
    Object.assign(inpage.loaded, {calls_tools: true, context: 4000});
    inpage.plan = [];
    inpage.requests = [];
    inpage.chat.completions.create = async function* ({messages, signal, ...asked}) {
        inpage.requests.push(structuredClone({messages, ...asked}));
        const hasTools = asked.tools && asked.tool_choice !== "none";
        const {says = "", calls = []} = (hasTools && inpage.plan.shift()) || {says: "Done."};
        const chunk = (delta, finish_reason = null) =>
            ({choices: [{delta, token_ids: [1], finish_reason}]});
        yield chunk({content: says});
        for (const [index, [name, given]] of calls.entries()) {
            const id = `call-${inpage.requests.length}-${index}`;
            yield chunk({tool_calls: [{index, id, function: {name, arguments: ""}}]});
            const text = JSON.stringify(given);
            yield chunk({tool_calls: [{index, function: {arguments: text}}]});
        }
        yield chunk({content: ""}, calls.length ? "tool_calls" : "stop");
        yield {choices: [], usage: {messages: []}};
    };
}"""
# A model that has to call one tool, by its grammar, and then answers.
FORCED = """() => {
    inpage.loaded.calls_tools = true;
    inpage.requests = [];
    const {completions} = inpage.chat;
    const create = completions.create;
    completions.create = request => {
        const tools = request.tools && [{type: "function", function: {name: "current_time"}}];
        const isFirst = !request.messages.some(({role}) => role === "tool");
        inpage.requests.push(structuredClone({...request, signal: undefined}));
        return create({...request, tools, tool_choice: isFirst ? "required" : "none"});
    };
}"""
# Python in the tool, which tries the ways out.
IN_TOOL = """
import js, sys
from pyodide.ffi import to_js
js.importScripts(js.URL.createObjectURL(js.Blob.new(to_js([%r]))))
print("engine", "py_runtime.app.in_page" in sys.modules)
print(await js.outcome)
"""


def caller(user: User) -> User:
    """Have the stand-in answer this user, with tools on."""
    user.page.evaluate(CALLER)
    user.page.get_by_role("button", name="Tools").click()
    user.page.get_by_label("Let the model use tools in this chat").check()
    user.page.keyboard.press("Escape")
    return user


def plan(user: User, *rounds: dict[str, Any]) -> None:
    user.page.evaluate("rounds => { inpage.plan.push(...rounds); }", list(rounds))


def calls(*given: tuple[str, Any], says: str = "") -> dict[str, Any]:
    return {"says": says, "calls": [list(each) for each in given]}


def send(user: User, question: str = "Go") -> Locator:
    """Send a question, and return the block of its answer's last call."""
    user.composer.fill(question)
    user.composer.press("Enter")
    return user.answers.last.locator(".tool-call").last


def decide(user: User, decision: str) -> None:
    user.answers.last.get_by_role("button", name=decision).click()


def allow_all(user: User, *ids: str) -> None:
    user.page.evaluate(
        """async ids => { (await import("/ui/chats.js")).shown.tools.always = ids; }""", ids
    )


def results(user: User) -> list[str]:
    """Return what the model has read of tools in its last request."""
    texts: list[str] = user.page.evaluate(
        "inpage.requests.at(-1).messages.filter(m => m.role === 'tool').map(m => m.content)"
    )
    return texts


@pytest.fixture
def user(desk: Desk) -> User:
    return caller(desk.tab())


def test_the_meter_counts_the_tools_that_are_on(user: User) -> None:
    user.page.evaluate("""() => {
        inpage.countTokens = async (messages, {tools = []} = {}) => {
            inpage.counted = tools.map(tool => tool.function.name);
            return {prompt_tokens: 10 + tools.length};
        };
    }""")
    meter = user.page.locator("#contextMeter")
    switch = user.page.get_by_label("Let the model use tools in this chat")
    for is_on, count in ((False, 10), (True, 13)):
        user.page.get_by_role("button", name="Tools").click()
        switch.set_checked(is_on)
        user.page.keyboard.press("Escape")
        expect(meter).to_have_js_property("value", count)
    assert user.page.evaluate("inpage.counted") == ["python", "calculator", "current_time"]


def test_a_call_asks_runs_and_goes_back_to_the_model(user: User) -> None:
    plan(user, calls(("calculator", {"expression": "2^10"}), says="I compute."))
    block = send(user, "What is 2 to the 10th?")
    expect(block).to_contain_text("The model wants to use Calculator")
    expect(block.locator(".given")).to_have_text("2^10")
    assert user.faults_of_access() == []
    decide(user, "Allow once")
    answer = user.answered()
    expect(answer.locator(".calls > .text")).to_have_text("I compute.")
    expect(block.locator("summary")).to_have_text("Used Calculator")
    expect(answer.locator(":scope > .text")).to_have_text("Done.")
    expect(block.locator(".result")).to_be_hidden()
    block.locator("summary").click()
    expect(block.locator(".result")).to_have_text("1024")
    first, second = user.page.evaluate("inpage.requests")
    assert [tool["function"]["name"] for tool in first["tools"]] == [
        "python",
        "calculator",
        "current_time",
    ]
    said, result = second["messages"][-2:]
    (call,) = said["tool_calls"]
    assert (said["content"], call["function"]["name"]) == ("I compute.", "calculator")
    assert result == {"role": "tool", "tool_call_id": call["id"], "content": "1024"}

    plan(user, calls(("calculator", {"expression": "1/"})))
    block = send(user)
    decide(user, "Always in this chat")
    user.answered()
    expect(block.locator("summary")).to_have_text("Calculator failed")
    assert results(user) == ["1024", "Error: The expression ends too early."]
    plan(user, calls(("calculator", {"expression": "3 * 3"}), ("nothing", {})))
    send(user)
    user.answered()
    assert results(user)[2] == "9"
    assert results(user)[3].startswith("Error: There is no tool nothing.")


def test_calls_are_kept_and_exported(desk: Desk, user: User) -> None:
    plan(user, calls(("calculator", {"expression": "6 * 7"}), says="Wait."))
    send(user, "Compute")
    decide(user, "Always in this chat")
    user.answered()
    (chat,) = json.loads(user.exported("Export").read_text())["chats"]
    (call,) = chat["messages"][-1]["calls"]
    assert (call["title"], call["state"], call["result"]) == ("Calculator", "done", "42")
    written = user.exported("Export as Markdown").read_text()
    assert (
        "Wait.\n\n**Used Calculator**\n\n```text\n6 * 7\n```\n\n```text\n42\n```\n\nDone."
        in written
    )
    assert "Used Calculator" in user.exported("Export as a web page").read_text()
    user.page.reload()
    desk.ready(user)
    answer = user.answers.last
    expect(answer.locator(".tool-call summary")).to_have_text("Used Calculator")
    expect(answer.locator(":scope > .text")).to_have_text("Done.")
    expect(user.page.get_by_role("button", name="Tools: on")).to_be_visible()
    user.import_chats(chat)  # whoever wrote it: nothing is allowed by it
    expect(user.page.get_by_role("button", name="Tools", exact=True)).to_be_visible()
    expect(answer.locator(".tool-call summary")).to_have_text("Used Calculator")
    tools = user.page.evaluate("import('/ui/chats.js').then(({shown}) => shown.tools)")
    assert tools == {"isOn": False, "always": []}


def test_a_call_that_the_user_refuses_is_not_run(user: User) -> None:
    plan(user, calls(("python", {"code": "print(1)"})))
    block = send(user)
    decide(user, "Don’t run")
    user.answered()
    expect(block.locator("summary")).to_have_text("Python was not run")
    assert results(user) == ["The user did not allow this call. Answer without it."]


def test_calls_end_after_some_rounds(user: User) -> None:
    plan(user, *[calls(("current_time", {"time_zone": "Asia/Tokyo"}))] * 20)
    send(user)
    decide(user, "Always in this chat")
    answer = user.answered()
    expect(answer.locator(".tool-call")).to_have_count(8)
    choices = user.page.evaluate("inpage.requests.map(request => request.tool_choice)")
    assert choices == [None] * 8 + ["none"]
    assert all("Asia/Tokyo" in result for result in results(user))


def test_stop_ends_a_question_and_code_that_runs(user: User) -> None:
    plan(user, calls(("python", {"code": "while True: pass"})))
    block = send(user)
    expect(block.get_by_role("button", name="Allow once")).to_be_visible()
    user.stop.click()
    user.answered()
    expect(block.locator("summary")).to_have_text("Python was stopped")
    expect(block.get_by_role("button", name="Allow once")).to_be_hidden()
    plan(user, calls(("python", {"code": "while True: pass"})))
    block = send(user)
    decide(user, "Always in this chat")
    expect(block.locator("summary")).to_have_text("Running Python…")
    until(user.page, lambda: user.page.locator("iframe").count() == 1, "Python starts")
    user.stop.click()
    user.answered()
    expect(block.locator("summary")).to_have_text("Python was stopped")
    expect(user.page.locator("iframe")).to_have_count(0)


@pytest.mark.thorough  # test_run_block.py has the same Python
def test_python_gives_results_reaches_nothing_and_is_ended(user: User, host: Host) -> None:
    """All in one Python, which takes its time to start.

    Compare tests/web/test_run_block.py, where the same ways lead out of a plain page.
    """
    allow_all(user, "python")
    ways = WAYS_OUT.replace("ADDRESSES", json.dumps([host.url, user.url]))
    codes = ["a = 6\nprint('seen')\na * 7", "print(a)", IN_TOOL % ways]
    plan(user, *[calls(("python", {"code": code})) for code in codes])
    send(user)
    user.answered()
    first, second, third = results(user)
    assert first == "seen\n42"
    assert "NameError" in second
    engine, outcome = third.splitlines()
    assert engine == "engine False"
    found = json.loads(outcome)
    assert (found["reached"], found["found"], found["origin"]) == ([], [], "null")
    assert host.asked == set()
    blocked = [url.replace("ws:", "http:") for url in found["blocked"]]
    assert all(
        f"{address}{name}" in blocked for address in (host.url, user.url) for name in NAMES[:3]
    )
    user.page.evaluate("""import("/ui/notebook/runner.js").then(({patience}) => {
        patience.code = 300;
    })""")
    plan(user, calls(("python", {"code": "print('begun')\nwhile True: pass"})))
    send(user)
    user.answered()
    assert "seconds, and was ended. It had printed:\nbegun" in results(user)[-1]


@pytest.mark.thorough  # a Python more
def test_python_that_prints_without_end_is_ended(user: User) -> None:
    allow_all(user, "python")
    plan(user, calls(("python", {"code": "while True: print('x' * 999)"})))
    send(user)
    user.answered()
    assert results(user) == ["Error: The code printed more than 200000 characters, and was ended."]


def test_a_model_without_tools_is_not_told_of_any(desk: Desk) -> None:
    user = desk.tab()
    user.page.get_by_role("button", name="Tools").click()
    expect(user.page.locator("#toolsUnfit")).to_contain_text("Stand-in was not made to use tools")
    expect(user.page.get_by_label("Let the model use tools in this chat")).to_be_disabled()
    user.page.keyboard.press("Escape")
    caller(user)
    user.page.evaluate("inpage.loaded.calls_tools = false")
    send(user)
    user.answered()
    assert user.page.evaluate("inpage.requests.at(-1).tools") is None


def test_an_engine_calls_a_tool_and_searches_files(fresh: User) -> None:
    """The model writes a call by its grammar; then the stand-in calls what needs the engine."""
    fresh.load()
    fresh.choose(max_tokens="100", temperature="0")  # a call takes half of these
    fresh.page.evaluate(FORCED)
    fresh.page.get_by_role("button", name="Tools").click()
    fresh.page.get_by_label("Let the model use tools in this chat").check()
    fresh.page.keyboard.press("Escape")
    block = send(fresh, "What time is it?")
    decide(fresh, "Allow once")
    answer = fresh.answered()
    expect(block.locator("summary")).to_have_text("Used Date and time")
    expect(answer.locator(".error")).to_be_empty()
    asked, call, result = fresh.page.evaluate("inpage.requests.at(-1).messages")
    assert (asked["role"], call["role"], result["role"]) == ("user", "assistant", "tool")
    expect(block.locator(".result")).to_have_text(result["content"])

    fresh.page.evaluate(CALLER)
    allow_all(fresh, "search_files")
    attach(fresh, "notes.txt", b"The heron is called Balthasar.\n", "text/plain")
    expect(fresh.page.locator("#attached li")).to_contain_text("tokens")
    plan(fresh, calls(("search_files", {"query": "heron"})))
    block = send(fresh, "Who is the heron?")
    fresh.answered()
    expect(block.locator("summary")).to_have_text("Used File search")
    assert results(fresh)[-1].startswith("[1] notes.txt, line 1:")
    assert "Balthasar" in results(fresh)[-1]


def test_the_calculator_computes_and_knows_its_bounds(user: User) -> None:
    sound = {
        "-2^2 + 3!": "2",
        "123456789 * 987654321": "121932631112635269",
        "15% * 80": "12",
        "10 % 4": "2",
        "sqrt(16) / max(3, 8)": "0.5",
        "0.1 + 0.2": "0.3",
        "2 ** -1 × 3": "1.5",
        "round(2.567, 2)": "2.57",
    }
    faulty = ["9^9^9^9", "9**99999999", "401!", "1/0", "alert(1)", "constructor", "(" * 99, "2 3"]
    found = user.page.evaluate(
        """async expressions => {
            const {calculate} = await import("/ui/tools/calculator.js");
            const valueOf = text => { try { return calculate(text); } catch { return null; } };
            return expressions.map(valueOf);
        }""",
        [*sound, *faulty],
    )
    assert found == [*sound.values(), *[None] * len(faulty)]
