"""The fields of a request beyond messages: each left out, given, and wrong; calls not in JSON."""

from typing import Any

import pytest

from py_runtime.base.errors import RequestError
from py_runtime.chat.call_syntax import (
    all_or_none,
    gemma_calls,
    parse_json,
    python_calls,
    tagged_calls,
    tagged_value,
)
from py_runtime.chat.conventions import CONVENTIONS
from py_runtime.chat.errors import ChatTemplateError
from py_runtime.chat.request import NO_ARGUMENTS, ChatRequest, in_plain_words
from py_runtime.chat.template import ChatTemplate

Json = dict[str, Any]
MANY = 1_000_000
SCHEMA = {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {}}}


def tool(name: Any = "look", **more: Any) -> Json:
    return {"type": "function", "function": {"name": name, **more}}


TOOLS = [tool("look", parameters=SCHEMA), tool("stop")]
NO_TOOLS: list[Any] = [[], {}, "x", [1], [{}], [{"type": "function"}]]
NO_VARIABLES: list[Any] = [[], 1, {1: 2}]


def take(**fields: Any) -> ChatRequest:
    return ChatRequest.take(fields)


def test_a_request_that_asks_for_nothing() -> None:
    fields: Json = {"temperature": 1}
    assert ChatRequest.take(fields) == ChatRequest((), (), True, True, {})
    assert fields == {"temperature": 1}, "what is not its own stays"


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"tools": TOOLS}, {"tools": tuple(TOOLS)}),
        ({"tools": TOOLS, "tool_choice": "auto"}, {"tools": tuple(TOOLS)}),
        ({"tools": TOOLS, "tool_choice": "none"}, {}),
        (
            {"tools": TOOLS, "tool_choice": "required"},
            {"tools": tuple(TOOLS), "forced": ("look", "stop")},
        ),
        (
            {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "stop"}}},
            {"tools": tuple(TOOLS), "forced": ("stop",)},
        ),
        ({"tool_choice": "none"}, {}),
        ({"tool_choice": "auto"}, {}),
        ({"parallel_tool_calls": False}, {"is_parallel": False}),
        ({"parallel_tool_calls": True}, {}),
        ({"reasoning_format": "none"}, {"splits_reasoning": False}),
        ({"reasoning_format": "auto"}, {}),
        ({"enable_thinking": False}, {"variables": {"enable_thinking": False}}),
        ({"reasoning_effort": "low"}, {"variables": {"reasoning_effort": "low"}}),
        (
            {"chat_template_kwargs": {"x": 1, "enable_thinking": True}, "enable_thinking": False},
            {"variables": {"x": 1, "enable_thinking": False}},
        ),
        ({"chat_template_kwargs": {}}, {}),
    ],
)
def test_what_may_be_asked_for(fields: Json, wanted: Json) -> None:
    assert take(**fields) == ChatRequest(**wanted)


@pytest.mark.parametrize(
    "given",
    [
        tool("a" * 64),
        tool("A.b-c_9"),
        tool(description=None),
        tool(description="what it does"),
        tool(parameters=None),
        tool(parameters={}),
    ],
)
def test_what_a_tool_may_be(given: Json) -> None:
    assert take(tools=[given]).tools == (given,)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        *(({"tools": given}, "tools") for given in NO_TOOLS),
        ({"tools": [{"type": "other", "function": {"name": "a"}}]}, "tools"),
        ({"tools": [{"function": {"name": "a"}}]}, "tools"),
        ({"tools": [{"type": "function", "function": "a"}]}, "tools"),
        *(({"tools": [tool(name)]}, "tools") for name in ("", "a b", "é", "a" * 65, "a\n", 5)),
        ({"tools": [tool(description=5)]}, "tools"),
        ({"tools": [tool(parameters=[])]}, "tools"),
        ({"tools": [tool("a"), tool("b"), tool("a")]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": "other"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": 5}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {}}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"function": {}}}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"function": {"name": "other"}}}, "tool_choice"),
        ({"parallel_tool_calls": 1}, "parallel_tool_calls"),
        ({"reasoning_format": "other"}, "reasoning_format"),
        ({"enable_thinking": "yes"}, "enable_thinking"),
        ({"reasoning_effort": 5}, "reasoning_effort"),
        *(({"chat_template_kwargs": given}, "chat_template_kwargs") for given in NO_VARIABLES),
        *(
            ({"chat_template_kwargs": {name: 1}}, "chat_template_kwargs")
            for name in ("messages", "tools", "documents", "add_generation_prompt")
        ),
    ],
)
def test_what_is_wrong_is_named(fields: Json, param: str) -> None:
    with pytest.raises(RequestError) as caught:
        take(**fields)
    assert caught.value.param == param


def test_the_schema_of_a_call_that_has_to_come() -> None:
    asked = take(tools=TOOLS, tool_choice="required")
    assert asked.schemas == {"look": SCHEMA, "stop": NO_ARGUMENTS}
    look, stop = asked.schema("arguments")["anyOf"]
    assert look["properties"]["name"] == {"const": "look"}
    assert look["required"] == ["name", "arguments"]
    assert look["additionalProperties"] is False
    moved = look["properties"]["arguments"]
    assert moved["properties"]["a"] == {"$ref": "#/anyOf/0/properties/arguments/$defs/x"}
    assert moved["type"] == "object"
    assert stop["properties"]["arguments"] == NO_ARGUMENTS
    assert NO_ARGUMENTS["additionalProperties"] is False


def test_references_inside_lists_go_along_and_others_stay() -> None:
    schema = {"anyOf": [{"$ref": "#"}, {"$ref": "https://x.org"}, {"const": "#"}], "$ref": 5}
    asked = take(tools=[tool(parameters=schema)], tool_choice="required")
    moved = asked.schema("parameters")["anyOf"][0]["properties"]["parameters"]
    root = "#/anyOf/0/properties/parameters"
    assert moved["anyOf"] == [{"$ref": root}, {"$ref": "https://x.org"}, {"const": "#"}]
    assert moved["$ref"] == 5


def test_tools_in_plain_words() -> None:
    call = {"function": {"name": "look", "arguments": {"a": "é"}}}
    messages: list[Json] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "5"},
    ]
    plain = in_plain_words(messages, [])
    assert [turn["role"] for turn in plain] == ["system", "user", "assistant", "user"]
    assert plain[2]["content"] == (
        '<tool_call>\n{"name": "look", "arguments": {"a": "é"}}\n</tool_call>'
    )
    assert plain[3]["content"] == "<tool_response>\n5\n</tool_response>"
    told = in_plain_words(messages, [tool(description="é")])
    assert told[1:] == plain[1:]
    assert told[0]["content"].startswith("Be brief.\n\nYou may call these functions:")
    assert '{"name": "look", "description": "é"}' in told[0]["content"]
    without = in_plain_words(messages[1:], [tool()])
    assert [turn["role"] for turn in without] == ["system", "user", "assistant", "user"]
    assert without[0]["content"].startswith("You may call these functions:")


# Calls --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("5", {"type": "string"}, "5"),
        ("5", {"type": "integer"}, 5),
        ("5", None, "5"),
        ("[1]", None, [1]),
        (' {"a": 1}', {}, {"a": 1}),
        ("[1", None, "[1"),
        ("five", {"type": "integer"}, "five"),
        ("null", {"type": "integer"}, None),
        ("None", {"type": "integer"}, None),
        ("True", {"type": "boolean"}, True),
        ("False", {"type": "boolean"}, False),
        ("null", {"type": "string"}, "null"),
        ("null", None, "null"),
        ("[1]", {"type": "string"}, "[1]"),
    ],
)
def test_what_a_tagged_value_means(text: str, schema: Any, value: Any) -> None:
    assert tagged_value(text, schema) == value
    assert type(tagged_value(text, schema)) is type(value)


def shown(calls: Any) -> Any:
    return calls and [(call.name, parse_json(call.arguments)) for call in calls]


def test_calls_in_other_ways() -> None:
    two = gemma_calls('call:f{a:<|"|>x, b:1<|"|>,b:<|"|>y<|"|>,c:3}', {})
    assert shown(two) == [("f", {"a": "x, b:1", "b": "y", "c": 3})]
    assert gemma_calls("call:f{a:}", {}) is None
    assert shown(python_calls('[f(a=1, b="x"), g()]', {})) == [("f", {"a": 1, "b": "x"}), ("g", {})]
    assert shown(python_calls("f(a=1)", {})) == [("f", {"a": 1})]
    for wrong in ("[f(1)]", "[f(a=x)]", "[]", "f", "[f(a=1), 5]", "f(a=1"):
        assert python_calls(wrong, {}) is None
    body = "<function=f><parameter=a>1</parameter><parameter=b>1</parameter></function>"
    tools = {"f": {"properties": {"a": {"type": "integer"}}}}
    assert shown(tagged_calls(body, tools)) == [("f", {"a": 1, "b": "1"})]
    assert shown(tagged_calls(body, {"f": {"properties": 5}})) == [("f", {"a": "1", "b": "1"})]
    assert tagged_calls(f"{body} and more", tools) is None
    assert tagged_calls("<function=f>text</function>", tools) is None


@pytest.mark.parametrize(
    "body",
    [
        "<function=f>" * MANY,
        "<function=" * MANY,
        "<function=f>" + "<parameter=a>" * MANY + "</function>",
        "<function=f>" + "<parameter=" * MANY + "</function>",
        "\n" * MANY,
    ],
    ids=lambda body: body[:24].strip() or "lines",
)
def test_beginnings_without_an_end_are_read_once(body: str) -> None:
    """Each begins a search of the rest where one pattern looks for both: hours, for so many."""
    assert tagged_calls(body, {}) is None
    assert all_or_none([]) is None
    assert parse_json("NaN") is None


def test_markers_of_conventions_are_texts() -> None:
    for convention in CONVENTIONS:
        assert convention.markers
        assert all(isinstance(marker, str) and marker for marker in convention.markers)


def test_which_template_of_several() -> None:
    several = [
        {"name": "other", "template": "o"},
        {"name": "default", "template": "first"},
        {"name": "default", "template": "last"},
        5,
    ]
    config = {"chat_template": several, "bos_token": "<s>", "eos_token": {"content": "</s>"}}
    template = ChatTemplate.from_config(config)
    assert template.source == "last"
    assert template.special_tokens == {"bos_token": "<s>", "eos_token": "</s>"}
    assert ChatTemplate("x").special_tokens == {}
    for wrong in ([], [{"name": "other", "template": "o"}], 5, None):
        with pytest.raises(ChatTemplateError, match="no chat_template"):
            ChatTemplate.from_config({"chat_template": wrong})
