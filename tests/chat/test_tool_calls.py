"""Calls and thoughts as models write them, recognised however the text is cut into pieces."""

# ruff: noqa: RUF001 (DeepSeek's own letters)

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from py_runtime.chat.answer_reader import MAX_UNREADABLE, AnswerReader, Parts
from py_runtime.chat.conventions import CONVENTIONS, convention_of, thoughts_of
from py_runtime.chat.request import in_plain_words
from py_runtime.decoder.conventions import Convention, Markers
from tests.growth import assert_linear

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "deep": {}},
}
TOOLS = {"weather": SCHEMA, "now": {"type": "object", "properties": {}}}
ONE = [("weather", {"city": "Köln", "days": 3})]
TWO = [*ONE, ("now", {})]

# What a template has in it, what its model writes, and what that means: content, thoughts, calls.
WRITTEN: dict[str, tuple[str, str, tuple[str, str, list[Any]]]] = {
    "JSON in tags": (
        "<tool_call> </think>",
        "<think>\nWhere? </think>\n\nOne moment.\n<tool_call>\n"
        '{"name": "weather", "arguments": {"city": "Köln", "days": 3}}\n</tool_call>\n'
        '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>',
        ("One moment.", "Where?", TWO),
    ),
    "the end of a call among its arguments": (
        "<tool_call>",
        '<tool_call>{"name": "weather", "arguments": {"city": "</tool_call>"}}</tool_call>',
        ("", "", [("weather", {"city": "</tool_call>"})]),
    ),
    "arguments as a text": (
        "<tool_call>",
        '<tool_call>[{"name": "weather", "arguments": "{\\"days\\": 1}"}]',
        ("", "", [("weather", {"days": 1})]),
    ),
    "half a call": (
        "<tool_call>",
        'Wait.\n<tool_call>\n{"name": "weather", "argum',
        ('Wait.\n<tool_call>\n{"name": "weather", "argum', "", []),
    ),
    "a call that is none, and one that is": (
        "<tool_call>",
        '<tool_call>{"name": 3}</tool_call> Hm. <tool_call>{"name": "now"}</tool_call>',
        ('<tool_call>{"name": 3}</tool_call> Hm.', "", [("now", {})]),
    ),
    "numbers that JSON has not": (
        "<tool_call>",
        '<tool_call>{"name": "weather", "arguments": {"days": NaN}}</tool_call>',
        ('<tool_call>{"name": "weather", "arguments": {"days": NaN}}</tool_call>', "", []),
    ),
    "nothing but text": ("<tool_call>", "3 < 4 and\n<tool\n", ("3 < 4 and\n<tool\n", "", [])),
    "tags": (
        "<tool_call> <function=",
        "<tool_call>\n<function=weather>\n<parameter=city>\n3\nK</parameter>\n<parameter=days>\n3\n"
        '</parameter>\n<parameter=deep>\n{"a": [1]}\n</parameter>\n</function>\n</tool_call>',
        ("", "", [("weather", {"city": "3\nK", "days": 3, "deep": {"a": [1]}})]),
    ),
    "Gemma": (
        "<|tool_call> <channel|>",
        "<|channel>thought\nHm.<channel|>Let me see."
        '<|tool_call>call:weather{city:<|"|>K{a:1}<|"|>,days:3,deep:{on:true,l:[1]}}<tool_call|>',
        (
            "Let me see.",
            "Hm.",
            [("weather", {"city": "K{a:1}", "days": 3, "deep": {"on": True, "l": [1]}})],
        ),
    ),
    "Mistral's list": (
        "[TOOL_CALLS]",
        '[TOOL_CALLS][{"name": "weather", "arguments": {"city": "Köln", "days": 3}, "id": "a"},'
        ' {"name": "now", "arguments": {}, "id": "b"}]',
        ("", "", TWO),
    ),
    "Mistral's names": (
        "[TOOL_CALLS] [/THINK]",
        "[THINK]Hm.[/THINK]Well."
        '[TOOL_CALLS]weather[ARGS]{"city": "Köln", "days": 3}[TOOL_CALLS]now[ARGS]{}',
        ("Well.", "Hm.", TWO),
    ),
    "Python": (
        "<|tool_list_start|>",
        '<|tool_call_start|>[weather(city="Köln", days=3), now()]<|tool_call_end|>Done.',
        ("Done.", "", TWO),
    ),
    "Python that is more than literals": (
        "<|tool_list_start|>",
        "<|tool_call_start|>[weather(days=1 + open('x'))]<|tool_call_end|>",
        ("<|tool_call_start|>[weather(days=1 + open('x'))]<|tool_call_end|>", "", []),
    ),
    "harmony": (
        "to=functions. <|channel|>",
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary "
        'to=functions.weather <|constrain|>json<|message|>{"city": "Köln", "days": 3}<|call|>',
        ("", "Hm.", ONE),
    ),
    "harmony without calls": (
        "to=functions. <|channel|>",
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.",
        ("Yes.", "Hm.", []),
    ),
    "DeepSeek": (
        "<｜tool▁call▁begin｜>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n"
        '{"city": "Köln", "days": 3}\n```<｜tool▁call▁end｜>\n'
        "<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        ("", "", TWO),
    ),
    "Phi": (
        "<|tool|>",
        'Yes.\nfunctools[{"name": "weather", "arguments": {"city": "Köln", "days": 3}}]',
        ("Yes.", "", ONE),
    ),
    "Nemotron": (
        '<TOOLCALL> </think> "parameters"',
        '<think>\nHm.\n</think>\n<TOOLCALL>[{"name": "weather", "arguments": {"city": "Köln", '
        '"days": 3}}, {"name": "now", "arguments": {}}]</TOOLCALL>',
        ("", "Hm.", TWO),
    ),
    "Granite": (
        "<|tool_call|>",
        '<|tool_call|>[{"name": "now", "arguments": {}}]',
        ("", "", [("now", {})]),
    ),
    "Llama": (
        '{"parameters": }',
        '{"name": "weather", "parameters": {"city": "Köln", "days": 3}}; '
        '{"name": "now", "parameters": {}}',
        ("", "", TWO),
    ),
    "Llama's Python tag": (
        "<|python_tag|>",
        '<|python_tag|>{"name": "now", "parameters": {}}',
        ("", "", [("now", {})]),
    ),
    "JSON that is the answer": (
        "<|python_tag|>",
        '{"name": "Ada", "parameters": {}} {"a": 1}',
        ('{"name": "Ada", "parameters": {}} {"a": 1}', "", []),
    ),
    "JSON in a sentence": (
        "<|python_tag|>",
        'It is {"name": "now", "parameters": {}}',
        ('It is {"name": "now", "parameters": {}}', "", []),
    ),
}


def read(
    template: str, text: str, cut: int = 10_000, **options: bool
) -> tuple[str, str, list[tuple[str, Any]]]:
    """Content, thoughts and calls of a text that comes in pieces of so many characters."""
    reader = AnswerReader(thoughts_of(template, ()), convention_of(template), TOOLS, **options)
    whole = Parts()
    for start in range(0, len(text), cut):
        whole += reader.push(text[start : start + cut])
    whole += reader.finish()
    calls = [(call.name, json.loads(call.arguments)) for call in whole.calls]
    assert len({call.id for call in whole.calls}) == len(calls)
    return whole.content, whole.reasoning, calls


@pytest.mark.parametrize("cut", [1, 2, 5, 10_000])
@pytest.mark.parametrize("case", WRITTEN)
def test_what_is_written_is_told_apart(case: str, cut: int) -> None:
    template, text, meant = WRITTEN[case]
    assert read(template, text, cut) == meant


@pytest.mark.parametrize("case", WRITTEN)
def test_nothing_of_a_call_is_shown_before_it_is_known_to_be_none(case: str) -> None:
    template, text, (content, _, _) = WRITTEN[case]
    reader = AnswerReader(thoughts_of(template, ()), convention_of(template), TOOLS)
    shown = ""
    for char in text:
        shown += reader.push(char).content
        assert content.startswith(shown)


def test_every_convention_is_tried() -> None:
    tried = {id(convention_of(template)) for template, _, _ in WRITTEN.values()}
    assert tried == set(map(id, CONVENTIONS))


def test_thoughts_that_the_prompt_began() -> None:
    text = "\nHm.\n</think>\n\nYes."
    assert read("</think>", text, 1, is_thinking=True) == ("Yes.", "Hm.", [])
    assert read("</think>", "Hm", 1, is_thinking=True) == ("", "Hm", [])


def test_tags_in_an_answer_begin_no_thoughts() -> None:
    text = "Write <think> first.</think>"
    assert read("</think>", text, 1) == (text, "", [])


def test_one_call_where_several_are_not_wanted() -> None:
    template, text, _ = WRITTEN["Mistral's list"]
    assert read(template, text, is_parallel=False) == ("", "", ONE)
    template, text, _ = WRITTEN["JSON in tags"]
    assert read(template, text, is_parallel=False)[2] == ONE


WORDS = sorted({mark for row in CONVENTIONS for mark in row.markers})
ANYTHING = st.lists(
    st.sampled_from([*WORDS, *'{}[]:,"', "<think>", "</think>", '{"name": "now"}', "call:f{", " "])
    | st.text(max_size=5)
)


@given(st.sampled_from(CONVENTIONS), ANYTHING, st.integers(1, 9))
def test_nothing_that_is_written_fails(convention: Any, words: list[str], cut: int) -> None:
    template, text = f"{convention.known_by[0]} </think>", "".join(words)
    assert read(template, text, cut) == read(template, text)


# Templates that know no tools -------------------------------------------------------------------

TOOL = {"type": "function", "function": {"name": "now", "parameters": {}}}
CALL = {"id": "a", "type": "function", "function": {"name": "now", "arguments": {}}}
ASKED: list[dict[str, Any]] = [
    {"role": "user", "content": "When?"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "a", "name": "now", "content": "noon"},
]


MARKED = [(row, call) for row in CONVENTIONS for call in row.calls]


@pytest.mark.parametrize(("convention", "call"), MARKED, ids=[f"{c.opener}" for _, c in MARKED])
def test_calls_that_are_none_take_work_that_grows_with_their_number(
    convention: Convention, call: Markers
) -> None:
    """A model that repeats itself writes thousands; nobody can be answered until they are read."""
    silent = "".join(convention.silent)

    def read_all(pieces: list[str]) -> None:
        reader, parts = AnswerReader(None, convention, TOOLS), Parts()
        for piece in pieces:
            parts += reader.push(piece)
        parts += reader.finish()
        assert not parts.calls
        assert len(parts.content) >= len(pieces)

    for repeated in (call.opener, call.opener + call.closer, call.closer + "{", f"{silent}a"):

        def write(count: int, text: str = repeated) -> list[str]:
            return [call.opener] + [text] * count

        assert_linear(write, read_all, 2 * MAX_UNREADABLE)


def test_a_call_after_a_few_that_are_none_is_read() -> None:
    none = "<tool_call>{</tool_call>"
    call = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'
    written = (none + call) * 5
    assert read("<tool_call>", written, 7)[2] == [("now", {})] * 5
    written = none * MAX_UNREADABLE + call
    assert read("<tool_call>", written, 7) == (written, "", [])


def test_tools_in_plain_words() -> None:
    system, user, call, result = in_plain_words(ASKED, [TOOL])
    assert system["role"] == "system"
    assert json.dumps(TOOL["function"]) in system["content"]
    assert user == ASKED[0]
    assert read("", call["content"])[2] == [("now", {})]
    assert result == {"role": "user", "content": "<tool_response>\nnoon\n</tool_response>"}


def test_tools_beside_a_system_prompt() -> None:
    system, *_ = in_plain_words([{"role": "system", "content": "Be kind."}, *ASKED], [TOOL])
    assert system["content"].startswith("Be kind.\n\nYou may call")
