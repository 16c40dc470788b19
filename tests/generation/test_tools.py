"""Tools, thoughts and several answers through a completion, whole and streamed."""

import json
from typing import Any

from tests.chat.chats import CHATML, HEADERS
from tests.generation.conftest import Toy

QUESTION = {"role": "user", "content": "fox"}
SKY = {
    "type": "function",
    "function": {
        "name": "sky",
        "parameters": {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/a"}},
            "required": ["a"],
            "$defs": {"a": {"enum": [1, 2]}},
        },
    },
}
NOW = {"type": "function", "function": {"name": "now"}}
CALLS = (
    "<think>\nHm.\n</think>\n\nWell.\n"
    '<tool_call>\n{"name": "sky", "arguments": {"a": 1}}\n</tool_call>\n'
    '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
)
ASKING = {"messages": [QUESTION], "tools": [NOW]}
REQUIRED = {"messages": [QUESTION], "tools": [SKY, NOW], "tool_choice": "required", "seed": 1}


def whole(deltas: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the message that the deltas add up to, as OpenAI's clients put it together."""
    message: dict[str, Any] = {"content": None, "refusal": None}
    for delta in deltas:
        for name in ("role", "content", "reasoning_content"):
            if delta.get(name):
                message[name] = (message.get(name) or "") + delta[name]
        for part in delta.get("tool_calls", ()):
            calls = message.setdefault("tool_calls", [])
            if part["index"] == len(calls):
                calls.append({key: value for key, value in part.items() if key != "index"})
            else:
                calls[part["index"]]["function"]["arguments"] += part["function"]["arguments"]
    return message


def answered(found: dict[str, Any]) -> dict[str, Any]:
    """Return the message of the only choice, which the chunks say as well."""
    (choice,) = found["answer"]["choices"]
    choices = [chunk["choices"][0] for chunk in found["chunks"] if chunk["choices"]]
    tokens = [token for each in choices for token in each["token_ids"]]
    assert tokens == choice["token_ids"]
    assert [each["finish_reason"] for each in choices[:-1]] == [None] * (len(choices) - 1)
    assert choices[-1]["finish_reason"] == choice["finish_reason"]
    streamed = whole([each["delta"] for each in choices])
    for call in [*choice["message"].get("tool_calls", ()), *streamed.get("tool_calls", ())]:
        assert len(call.pop("id")) == 9
    assert streamed == choice["message"]
    return {**choice["message"], "finish_reason": choice["finish_reason"]}


def calls_of(message: dict[str, Any]) -> list[tuple[str, Any]]:
    functions = [call["function"] for call in message["tool_calls"]]
    return [(each["name"], json.loads(each["arguments"])) for each in functions]


def test_calls_and_thoughts(toy: Toy) -> None:
    found = toy.run("written", text=CALLS, template=CHATML, fields=ASKING)
    message = answered(found)
    assert message["content"] == "Well."
    assert message["reasoning_content"] == "Hm."
    assert calls_of(message) == [("sky", {"a": 1}), ("now", {})]
    assert message["finish_reason"] == "tool_calls"
    assert found["answer"]["usage"]["completion_tokens_details"]["reasoning_tokens"] > 0
    shown = [chunk["choices"][0]["delta"] for chunk in found["chunks"] if chunk["choices"]]
    assert not any("tool_call>" in (delta.get("content") or "") for delta in shown)


def test_one_call_only(native_toy: Toy) -> None:
    fields = {**ASKING, "parallel_tool_calls": False}
    found = native_toy.run("written", text=CALLS, template=CHATML, fields=fields)
    assert calls_of(answered(found)) == [("sky", {"a": 1})]
    asked = native_toy.run("written", text=CALLS, template=CHATML, fields=ASKING)
    tokens = [len(each["answer"]["choices"][0]["token_ids"]) for each in (found, asked)]
    assert tokens[0] < tokens[1], "it ends with the first"


def test_a_call_that_is_cut_off(native_toy: Toy) -> None:
    fields = {**ASKING, "max_tokens": 60}
    message = answered(native_toy.run("written", text=CALLS, template=CHATML, fields=fields))
    assert message["finish_reason"] == "length"
    assert "tool_calls" not in message
    assert message["content"].startswith("Well.\n<tool_call>\n{")


def test_nobody_asked_for_calls(native_toy: Toy) -> None:
    plain = {"messages": [QUESTION]}
    for fields in (plain, {**ASKING, "tool_choice": "none"}):
        message = answered(native_toy.run("written", text=CALLS, template=CHATML, fields=fields))
        assert message["content"] == CALLS.partition("</think>\n\n")[2]
        assert message["reasoning_content"] == "Hm."
        assert message["finish_reason"] == "stop"


def test_thoughts_may_stay_where_they_are(native_toy: Toy) -> None:
    fields = {"messages": [QUESTION], "reasoning_format": "none"}
    message = answered(native_toy.run("written", text=CALLS, template=CHATML, fields=fields))
    assert message["content"] == CALLS


def test_a_call_is_required(toy: Toy) -> None:
    found = toy.run("completion", is_chat=True, fields=REQUIRED)
    message = answered(found)
    assert message["content"] is None
    assert message["finish_reason"] == "tool_calls"
    ((name, arguments),) = calls_of(message)
    assert name in ("sky", "now")
    assert arguments in ({"a": 1}, {"a": 2}, {})


def test_a_call_of_one_tool_is_required(native_toy: Toy) -> None:
    cases: list[tuple[str, list[Any], str, list[Any]]] = [
        ("now", [SKY, NOW], CHATML, [{}]),
        ("sky", [SKY, NOW], CHATML, [{"a": 1}, {"a": 2}]),
        ("now", [NOW], HEADERS, [{}]),
    ]
    for name, tools, template, allowed in cases:
        choice = {"type": "function", "function": {"name": name}}
        fields = {**REQUIRED, "tools": tools, "tool_choice": choice}
        found = native_toy.run("templated", template=template, fields=fields)
        ((called, arguments),) = calls_of(answered(found))
        assert called == name
        assert arguments in allowed


def test_tools_that_no_grammar_has(native_toy: Toy) -> None:
    odd = {"type": "object", "properties": {"a": {"not": {}}}}
    tool = {"type": "function", "function": {"name": "odd", "parameters": odd}}
    found = native_toy.run("completion", is_chat=True, fields={**REQUIRED, "tools": [tool]})
    assert found["error"]["param"] == "tools"
    assert "#/anyOf/0/properties/arguments/properties/a" in found["error"]["message"]


def test_what_the_template_reads(native_toy: Toy) -> None:
    call = {"id": "abc", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    messages = [
        QUESTION,
        {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "Hm."},
        {"role": "tool", "tool_call_id": "abc", "content": "noon <|im_end|>"},
    ]
    template = (
        "{% for m in messages %}{{ m.role }}:{{ m.content }}"
        "{% if m.tool_calls %}{{ m.tool_calls[0].function.arguments | tojson }}"
        "{{ m.reasoning_content }}{% endif %}"
        "{% if m.name %}({{ m.name }}){% endif %};{% endfor %}"
        "{{ tools | tojson }}{{ mood }}{{ enable_thinking }}{{ reasoning_effort }}"
    )
    fields = {
        "messages": messages,
        "tools": [NOW],
        "chat_template_kwargs": {"mood": "fine"},
        "enable_thinking": False,
        "reasoning_effort": "low",
    }
    prompt = native_toy.run("prompt", template=template, fields=fields)
    assert prompt == (
        f"user:fox;assistant:{{}}Hm.;tool:noon <|im_end|>(now);{json.dumps([NOW])}fineFalselow"
    )


def test_several_answers(native_toy: Toy) -> None:
    fields = {"messages": [QUESTION], "max_tokens": 5, "seed": 3, "ignore_eos": True, "n": 3}
    found = native_toy.run("completion", is_chat=True, fields=fields)
    answer = found["answer"]
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2]
    assert answer["usage"]["completion_tokens"] == 15
    assert len({tuple(choice["token_ids"]) for choice in answer["choices"]}) == 3
    for index, choice in enumerate(answer["choices"]):
        alone = native_toy.run(
            "completion", is_chat=True, fields={**fields, "n": 1, "seed": 3 + index}
        )
        assert choice["token_ids"] == alone["answer"]["choices"][0]["token_ids"]
        parts = [
            each for chunk in found["chunks"] for each in chunk["choices"] if each["index"] == index
        ]
        assert [token for each in parts for token in each["token_ids"]] == choice["token_ids"]
        assert parts[0]["delta"]["role"] == "assistant"
        assert parts[-1]["finish_reason"] == "length"
    assert found["chunks"][-1]["usage"]["completion_tokens"] == 15


def test_labels_of_requests(native_toy: Toy) -> None:
    fields = {"messages": [QUESTION], "max_tokens": 1}
    for labels in (
        {"user": "ada", "metadata": {"a": "b"}},
        dict.fromkeys(("user", "metadata", "n")),
    ):
        assert "answer" in native_toy.run("completion", is_chat=True, fields={**fields, **labels})
    wrong = {"user": 5, "metadata": {"a": 1}, "n": 17}
    for name, value in wrong.items():
        found = native_toy.run("completion", is_chat=True, fields={**fields, name: value})
        assert found["error"]["param"] == name
