"""The fields of a request beyond messages: tools, thoughts, and variables of the chat template."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from py_runtime.base.errors import RequestError
from py_runtime.base.nesting import refuse_deep
from py_runtime.chat.call_syntax import Tools

_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)
_OURS = ("messages", "tools", "documents", "add_generation_prompt")  # not a caller's to set
REASONING_FORMATS = ("auto", "none")
CHOICES = ("none", "auto", "required")
NO_ARGUMENTS: dict[str, Any] = {
    "type": "object",
    "properties": {},
    "additionalProperties": False,
}
Json = dict[str, Any]


@dataclass(frozen=True)
class ChatRequest:
    """The checked fields."""

    tools: tuple[Json, ...] = ()  # that the model hears of
    forced: tuple[str, ...] = ()  # names of tools: it has to call one of them
    is_parallel: bool = True  # several calls in one answer
    splits_reasoning: bool = True  # thoughts are told apart from the answer
    variables: Json = field(default_factory=dict)  # of the template

    @classmethod
    def take(cls, fields: dict[str, Any]) -> "ChatRequest":
        """Take its own fields out of a request's; RequestError names the one that is wrong."""
        tools = _tools(fields.pop("tools", None))
        choice = fields.pop("tool_choice", None)
        forced = _forced_names(choice, [tool["function"]["name"] for tool in tools])
        parallel = fields.pop("parallel_tool_calls", None)
        _check_bool("parallel_tool_calls", parallel)
        return cls(
            tools=() if choice == "none" else tools,
            forced=forced,
            is_parallel=parallel is not False,
            splits_reasoning=_reasoning_format(fields.pop("reasoning_format", None)) != "none",
            variables=_variables(fields),
        )

    @property
    def schemas(self) -> Tools:
        """Return the schemas of arguments, by the tools' names."""
        functions = [tool["function"] for tool in self.tools]
        return {each["name"]: each.get("parameters") or NO_ARGUMENTS for each in functions}

    def schema(self, arguments: str) -> Json:
        """Return the schema of a call that has to come, as JSON."""
        calls = [(name, self.schemas[name]) for name in self.forced]
        options = [
            {
                "type": "object",
                "properties": {
                    "name": {"const": name},
                    arguments: _move_references(parameters, f"#/anyOf/{at}/properties/{arguments}"),
                },
                "required": ["name", arguments],
                "additionalProperties": False,
            }
            for at, (name, parameters) in enumerate(calls)
        ]
        return {"anyOf": options}


def _tools(given: Any) -> tuple[Json, ...]:
    if given is None:
        return ()
    if not isinstance(given, list) or not given:
        raise RequestError("tools must be a list with at least one tool", "tools")
    refuse_deep(given, "tools", "tools")
    tools = tuple(_tool(f"tools[{at}]", tool) for at, tool in enumerate(given))
    names: set[str] = set()
    for tool in tools:
        name = tool["function"]["name"]
        if name in names:
            raise RequestError(f"tools has {name!r} twice", "tools")
        names.add(name)
    return tools


def _tool(where: str, given: Any) -> Json:
    tool: Json = given if isinstance(given, dict) else {}
    function = tool.get("function")
    if not isinstance(function, dict) or tool.get("type") != "function":
        example = '{"type": "function", "function": {"name": ...}}'
        raise RequestError(f"{where} must be an object such as {example}", "tools")
    name = function.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        fault = "must be up to 64 letters, digits, dots, dashes and underscores"
        raise RequestError(f"{where}.function.name {fault}, got {name!r:.100}", "tools")
    if not isinstance(function.get("description", ""), str | None):
        raise RequestError(f"{where}.function.description must be a text", "tools")
    if not isinstance(function.get("parameters"), dict | None):
        raise RequestError(f"{where}.function.parameters must be a JSON schema", "tools")
    return tool


def _forced_names(choice: Any, names: list[str]) -> tuple[str, ...]:
    if choice is None:
        return ()
    if not names and choice not in ("none", "auto"):
        raise RequestError("tool_choice needs tools", "tool_choice")
    if isinstance(choice, str) and choice in CHOICES:
        return tuple(names) if choice == "required" else ()
    function = choice.get("function") if isinstance(choice, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str):
        example = '{"type": "function", "function": {"name": ...}}'
        raise RequestError(
            f"tool_choice must be one of {', '.join(CHOICES)} or an object such as {example}",
            "tool_choice",
        )
    if name not in names:
        raise RequestError(f"tool_choice asks for {name!r:.100}: tools has none", "tool_choice")
    return (name,)


def _reasoning_format(given: Any) -> Any:
    if given is not None and given not in REASONING_FORMATS:
        known = ", ".join(REASONING_FORMATS)
        raise RequestError(f"reasoning_format must be one of {known}", "reasoning_format")
    return given


def _variables(fields: dict[str, Any]) -> Json:
    given = fields.pop("chat_template_kwargs", None)
    variables = {} if given is None else given
    if not isinstance(variables, dict) or not all(isinstance(name, str) for name in variables):
        raise RequestError(
            "chat_template_kwargs must be an object of a chat template's variables",
            "chat_template_kwargs",
        )
    refuse_deep(variables, "chat_template_kwargs", "chat_template_kwargs")
    for name in _OURS:
        if name in variables:
            raise RequestError(f"chat_template_kwargs cannot set {name}", "chat_template_kwargs")
    thinking = fields.pop("enable_thinking", None)
    _check_bool("enable_thinking", thinking)
    effort = fields.pop("reasoning_effort", None)
    if not isinstance(effort, str | None):
        raise RequestError("reasoning_effort must be a text such as low", "reasoning_effort")
    named = {"enable_thinking": thinking, "reasoning_effort": effort}
    return variables | {name: value for name, value in named.items() if value is not None}


def _check_bool(name: str, value: Any) -> None:
    if not isinstance(value, bool | None):
        raise RequestError(f"{name} must be true or false, got {value!r:.100}", name)


def _move_references(schema: Any, to: str) -> Any:
    """Point a schema's references to its place inside another schema."""
    if isinstance(schema, list):
        return [_move_references(each, to) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: to + value[1:]
        if key == "$ref" and isinstance(value, str) and value.startswith("#")
        else _move_references(value, to)
        for key, value in schema.items()
    }


# Templates that know no tools -------------------------------------------------------------------

INTRODUCTION = """\
You may call these functions:
<tools>
{tools}
</tools>
To call one, answer with JSON in tags:
<tool_call>
{{"name": "...", "arguments": {{...}}}}
</tool_call>"""


def in_plain_words(messages: Sequence[Mapping[str, Any]], tools: Sequence[Json]) -> list[Json]:
    """Messages without tools: these are in the system prompt, calls and results are texts."""
    turns = [_plain_turn(message) for message in messages]
    if not tools:
        return turns
    lines = "\n".join(json.dumps(tool["function"], ensure_ascii=False) for tool in tools)
    introduction = INTRODUCTION.format(tools=lines)
    if turns[0]["role"] == "system":
        first = {"role": "system", "content": f"{turns[0]['content']}\n\n{introduction}"}
        return [first, *turns[1:]]
    return [{"role": "system", "content": introduction}, *turns]


def _plain_turn(message: Mapping[str, Any]) -> Json:
    content = message["content"]
    if message["role"] == "tool":
        return {"role": "user", "content": f"<tool_response>\n{content}\n</tool_response>"}
    calls = [
        f"<tool_call>\n{json.dumps(call['function'], ensure_ascii=False)}\n</tool_call>"
        for call in message.get("tool_calls", ())
    ]
    return {"role": message["role"], "content": "\n".join(filter(None, [content, *calls]))}
