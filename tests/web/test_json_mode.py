"""Answers in JSON: switched on for a chat, by a schema that is checked, and kept with the chat."""

import json
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.web import wording
from tests.web.user import Desk, User
from tools.files import ROOT

pytestmark = pytest.mark.browser

FOX = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["fox", "dog"]},
        "legs": {"type": "integer", "minimum": 0, "maximum": 9},
    },
    "required": ["kind", "legs"],
}
LONG = {
    "type": "object",
    "properties": {"words": {"type": "string", "minLength": 60, "maxLength": 90}},
    "required": ["words"],
}
MADE = '{"kind":"fox","legs":4}'
# A stand-in for the model and for the engine's check, which finds nothing wrong.
ANSWERS = """() => {
    inpage.call = async () => null;
    inpage.loaded.calls_tools = true;
    inpage.chat.completions.create = async function* ({messages, signal, ...asked}) {
        inpage.asked = {messages, ...asked};
        const delta = {content: JSON.stringify({kind: "fox", legs: 4})};
        yield {choices: [{delta, token_ids: [1], finish_reason: "stop"}]};
        yield {choices: [], usage: {messages: []}};
    };
}"""
SYSTEM = """async () => {
    const {pathOf, shown} = await import("/ui/chats.js");
    return pathOf(shown).at(-1).made.system;
}"""


def open_dialog(user: User) -> Locator:
    user.page.locator("header [data-opens=settings]").click()
    user.page.get_by_role("button", name="Answer in JSON…").click()
    return user.page.get_by_role("dialog", name="Answers in JSON")


def answer_in(user: User, schema: dict[str, Any]) -> None:
    dialog = open_dialog(user)
    dialog.get_by_label("JSON schema").fill(json.dumps(schema))
    dialog.get_by_role("button", name="Done").click()
    expect(dialog).to_be_hidden()
    user.page.keyboard.press("Escape")
    expect(chip(user)).to_be_visible()


def chip(user: User) -> Locator:
    return user.page.get_by_role("button", name="Answers in JSON", exact=True)


def shown_json(answer: Locator) -> Any:
    return json.loads(answer.locator("pre[data-language=json] code").inner_text())


def verdict(answer: Locator) -> Locator:
    return answer.locator(".json-verdict")


def test_answers_follow_the_schema(user: User) -> None:
    user.choose(max_tokens="200", temperature="1", seed="3")
    answer_in(user, FOX)
    for answer in (user.ask("What is it?"), user.regenerate()):
        found = shown_json(answer)
        assert found["kind"] in ("fox", "dog")
        assert found["legs"] in range(10)
        expect(verdict(answer)).to_have_text("Valid against the schema")
    expect(answer.locator("pre .hljs-attr")).to_have_count(2)
    assert user.faults_of_access() == []
    assert json.dumps(FOX, separators=(",", ":")) in user.page.evaluate(SYSTEM)
    user.page.get_by_role("button", name="Turn off answers in JSON").click()
    expect(chip(user)).to_be_hidden()
    expect(verdict(user.ask("And now?"))).to_have_count(0)
    expect(user.page.locator(".json-verdict")).to_have_count(1)


def test_json_that_is_cut_off_says_so_and_goes_on_within_its_schema(user: User) -> None:
    user.new_chat()
    answer_in(user, LONG)
    user.pause_answers()
    user.composer.fill("Tell me")
    user.composer.press("Enter")
    answer = user.answers.last
    expect(answer.locator("pre code")).to_contain_text('"words"')
    user.stop.click()
    user.answered()
    expect(verdict(answer)).to_have_text("The JSON is cut off, so it is not valid.")
    user.let_answers_go_on()
    answer.get_by_role("button", name="Continue").click()
    expect(verdict(answer)).to_have_text("Valid against the schema")
    assert len(shown_json(user.answered())["words"]) >= 60


def test_a_schema_that_cannot_be_is_refused_in_words(user: User) -> None:
    user.new_chat()
    dialog = open_dialog(user)
    field, fault = dialog.get_by_label("JSON schema"), dialog.get_by_role("alert")
    for text, words in {
        '{\n "type": "object",\n "properties": tru\n}': "This is not valid JSON: look at line 3.",
        "[1]": "A JSON schema is an object",
        '{"not": {}}': "#: the keyword 'not' is not supported",
        '{"properties": {"a": {"minimum": "x"}}}': "#/properties/a: minimum is 'x', not a number",
    }.items():
        field.fill(text)
        dialog.get_by_role("button", name="Done").click()
        expect(fault).to_contain_text(words)
        expect(dialog).to_be_visible()
    user.page.keyboard.press("Escape")
    user.page.keyboard.press("Escape")
    expect(chip(user)).to_be_hidden()
    user.choose_language("de")
    user.page.locator("header [data-opens=settings]").click()
    user.page.get_by_role("button", name="In JSON antworten…").click()
    user.page.locator("#jsonSchema").fill('{"properties": {"a": {"minimum": "x"}}}')
    user.page.get_by_role("button", name="Prüfen").click()
    expect(user.page.locator("#jsonFault")).to_have_text(
        "#/properties/a: minimum hat den Wert 'x', muss aber eine Zahl sein"
    )
    user.page.keyboard.press("Escape")
    user.page.keyboard.press("Escape")
    user.choose_language("en")


def test_the_line_of_a_fault_is_found() -> None:
    texts = {
        '{"a": [1, 2,\n]}': 2,
        '{"a": 1\n"b": 2}': 2,
        '{\n"a": 01}': 2,
        '{"a": "\n"}': 1,
        "{\n\n a: 1}": 3,
        '{"a": {\n"b": []': 2,
        '{"a": 1},\n{}': 1,
        '{"a":\n\u00a01}\n': 2,
        '{"a": -1.5e+3, "b": [true, {}, "\\u00e9"]}\n\n]': 3,
    }
    path = json.dumps((ROOT / "web" / "ui" / "json" / "line.js").as_uri())
    code = f"return {json.dumps(list(texts))}.map((await import({path})).faultyLine);"
    assert wording.in_node(code) == list(texts.values())


@pytest.fixture
def asked(desk: Desk) -> User:
    """Return a user whose chat has an answer in JSON."""
    user = desk.tab()
    user.page.evaluate(ANSWERS)
    answer_in(user, FOX)
    user.ask("What is it?")
    return user


def test_the_form_of_answers_is_kept_exported_and_shared(desk: Desk, asked: User) -> None:
    (record,) = asked.records()
    assert record["json"] == {"isOn": True, "schema": json.dumps(FOX)}
    form = asked.page.evaluate("inpage.asked.response_format")
    assert form["json_schema"]["schema"] == FOX
    asked.page.reload()
    desk.ready(asked)
    expect(chip(asked)).to_be_visible()
    assert shown_json(asked.answers.last) == json.loads(MADE)
    expect(verdict(asked.answers.last)).to_have_text("Valid against the schema")
    markdown = asked.exported("Export as Markdown").read_text()
    assert '```json\n{\n  "kind": "fox",\n  "legs": 4\n}\n```' in markdown
    export = asked.exported("Export").read_text()
    asked.choose_in_menu("Copy as a link")
    expect(asked.notices).to_contain_text("Copied.")
    link = asked.page.evaluate("navigator.clipboard.readText()")
    asked.import_text(export)
    expect(asked.titles).to_have_count(2)
    expect(verdict(asked.answers.last)).to_have_text("Valid against the schema")
    expect(chip(asked)).to_be_visible()
    asked.new_chat()
    expect(chip(asked)).to_be_hidden()
    asked.page.goto(link)
    expect(verdict(asked.answers.last)).to_have_text("Valid against the schema")
    expect(chip(asked)).to_be_visible()


def test_chats_of_before_have_no_form(desk: Desk) -> None:
    user = desk.tab()
    messages = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": MADE, "made": {"json": "{"}, "settings": {}},
    ]
    user.import_chats(
        {"messages": messages, "version": 9},
        {"messages": messages, "json": {"isOn": True, "schema": "{"}},
    )
    expect(user.answers.last).to_contain_text(MADE)
    expect(chip(user)).to_be_hidden()
    expect(verdict(user.answers.last)).to_have_count(0)
    forms = [record["json"] for record in user.records()]
    assert forms == [{"isOn": False, "schema": ""}] * 2


def test_tools_and_json_exclude_each_other(asked: User) -> None:
    tools = asked.page.get_by_role("button", name="Tools")
    tools.click()
    dialog = asked.page.get_by_role("dialog", name="Tools")
    expect(dialog).to_contain_text("Turning on tools turns that off")
    dialog.get_by_label("Let the model use tools in this chat").check()
    expect(dialog).to_contain_text("This chat no longer answers in JSON")
    expect(chip(asked)).to_be_hidden()
    asked.page.keyboard.press("Escape")
    asked.ask("With tools")
    assert asked.page.evaluate("[!!inpage.asked.tools, inpage.asked.response_format ?? null]") == [
        True,
        None,
    ]
    dialog = open_dialog(asked)
    expect(dialog).to_contain_text("Turning on JSON turns them off")
    dialog.get_by_label("Answer in JSON in this chat").check()
    expect(dialog).to_contain_text("Tools are now off in this chat")
    asked.page.keyboard.press("Escape")
    asked.page.keyboard.press("Escape")
    expect(chip(asked)).to_be_visible()
    asked.ask("In JSON")
    assert asked.page.evaluate("inpage.asked.tools ?? null") is None
