"""The ways in which models write calls of tools: a function for each, from a body to its calls.

The body is what stands between a convention's markers. None means that it cannot be read as calls,
so it is text like any other; nothing that a model writes raises an error here.
"""

import ast
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from py_runtime.base.tool_call import ToolCall
from py_runtime.decoder import conventions
from py_runtime.decoder.families.deepseek import SEPARATOR
from py_runtime.decoder.families.gemma import QUOTE

Tools = Mapping[str, Mapping[str, Any]]  # their names, and the JSON schemas of their arguments
Calls = list[ToolCall] | None

_TAG = re.compile(r"\s*<(function|parameter)=([^>\n]+)>")
_GEMMA_CALL = re.compile(r"\s*call:([^\s{]+)\s*(\{.*\})\s*", re.DOTALL)
_GEMMA_KEY = re.compile(r'(?<=[{,])\s*([^\s{}\[\],:"]+)\s*:')
_MISTRAL_CALL = re.compile(
    r"\s*([\w.-]+)(?:\[CALL_ID\][\w-]*)?(?:\[ARGS\])?\s*(\{.*\})\s*", re.DOTALL
)
_FENCE = re.compile(r"^\s*```(?:json)?|```\s*$")
_BETWEEN = re.compile(r"[ \t\r\n,;]*")  # of several values, one after the other


def json_calls(body: str, tools: Tools) -> Calls:
    """{"name": ..., "arguments": {...}}: one, several, or a list of them."""
    values = json_values(body)
    return all_or_none(json_call(value) for value in values) if values else None


def json_call(value: Any) -> ToolCall | None:
    """Read a call from a JSON object; families differ in what they call the arguments."""
    if not isinstance(value, dict):
        return None
    described = value.get("function")
    if isinstance(described, dict):
        value = described
    arguments = value.get("arguments", value.get("parameters", {}))
    if isinstance(arguments, str):
        arguments = parse_json(arguments)
    return ToolCall.of(value.get("name"), arguments)


def json_values(text: str) -> list[Any] | None:
    """Return all values of a text that holds nothing else; a list counts as its items."""
    decoder = json.JSONDecoder(parse_constant=refuse_constant)
    values: list[Any] = []
    at = 0
    try:
        while (at := _skip_between(text, at)) < len(text):
            value, at = decoder.raw_decode(text, at)
            values += value if isinstance(value, list) else [value]
    except (ValueError, RecursionError):
        return None
    return values


def _skip_between(text: str, at: int) -> int:
    """Return where the next value begins, or the text ends."""
    found = _BETWEEN.match(text, at)
    assert found, "nothing is enough for it"
    return found.end()


def parse_json(text: str) -> Any:
    """Return a JSON text's value; None where it is not JSON."""
    try:
        return json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return None


def refuse_constant(name: str) -> None:
    """NaN and Infinity, which Python reads and JSON does not have."""
    raise ValueError(name)


def all_or_none(calls: Iterable[ToolCall | None]) -> Calls:
    """Half of what was asked for is not what was asked for."""
    found = list(calls)
    whole = [call for call in found if call is not None]
    return whole if whole and len(whole) == len(found) else None


# Other ways than JSON ---------------------------------------------------------------------------


def known_calls(body: str, tools: Tools) -> Calls:
    """Llama's JSON has no markers: what names no tool is an answer that happens to be JSON."""
    calls = json_calls(body, tools)
    return calls if calls and all(call.name in tools for call in calls) else None


def tagged_calls(body: str, tools: Tools) -> Calls:
    """<function=NAME> with a <parameter=NAME> for each argument, or JSON where a tune writes it."""
    found = _tagged("function", body)
    if not found:
        return json_calls(body, tools)
    return all_or_none(tagged_call(name, inner, tools) for name, inner in found)


def _tagged(tag: str, text: str) -> list[tuple[str, str]] | None:
    """Read <tag=NAME>…</tag>, one after the other; None where there is anything else.

    Not by one pattern: beginnings without an end would have it look through the rest for each.
    """
    closer, found, at = f"</{tag}>", [], 0
    while opened := _TAG.match(text, at):
        end = text.find(closer, opened.end())
        if opened[1] != tag or end < 0:
            return None
        found.append((opened[2].strip(), text[opened.end() : end]))
        at = end + len(closer)
    return None if text[at:].strip() else found


def tagged_call(name: str, inner: str, tools: Tools) -> ToolCall | None:
    """Values stand there as they are: what they mean follows from the tool's schema."""
    parameters = _tagged("parameter", inner)
    if parameters is None:
        return None
    properties = tools.get(name, {}).get("properties")
    schemas = properties if isinstance(properties, dict) else {}
    arguments = {
        key: tagged_value(text.removeprefix("\n").removesuffix("\n"), schemas.get(key))
        for key, text in parameters
    }
    return ToolCall.of(name, arguments)


def tagged_value(text: str, schema: Any) -> Any:
    """Read a value as its schema says.

    Without a schema, anything but a list or an object is text.
    """
    kind = schema.get("type") if isinstance(schema, dict) else None
    is_text = kind == "string" or (kind is None and text.lstrip()[:1] not in ("{", "["))
    plain = {"True": "true", "False": "false", "None": "null"}.get(text.strip(), text)
    if is_text or (plain.strip() != "null" and parse_json(plain) is None):
        return text
    return parse_json(plain)


def python_calls(body: str, tools: Tools) -> Calls:
    """[f(a=1, b="x")], LFM2's."""
    try:
        tree = ast.parse(body.strip(), mode="eval").body
        nodes = tree.elts if isinstance(tree, ast.List) else [tree]
        return all_or_none(map(python_call, nodes))
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return None


def python_call(node: ast.expr) -> ToolCall | None:
    """Read a call whose arguments are named literals."""
    if not isinstance(node, ast.Call) or node.args:
        return None
    arguments = {str(each.arg): ast.literal_eval(each.value) for each in node.keywords}
    return ToolCall.of(ast.unparse(node.func), arguments)


def gemma_calls(body: str, tools: Tools) -> Calls:
    """call:name{key:<|"|>text<|"|>,count:3}: JSON but for keys and quotes."""
    found = _GEMMA_CALL.fullmatch(body)
    if not found:
        return None
    name, written = found.groups()
    parts = written.split(QUOTE)
    parts[::2] = [_GEMMA_KEY.sub(r'"\1":', outside) for outside in parts[::2]]
    parts[1::2] = [json.dumps(inside) for inside in parts[1::2]]
    return all_or_none([ToolCall.of(name, parse_json("".join(parts)))])


def mistral_calls(body: str, tools: Tools) -> Calls:
    """Read a list of JSON objects, or name[ARGS]{...}, which newer models write."""
    found = _MISTRAL_CALL.fullmatch(body)
    if not found:
        return json_calls(body, tools)
    return all_or_none([ToolCall.of(found[1], parse_json(found[2]))])


def deepseek_calls(body: str, tools: Tools) -> Calls:
    """Read a name, a separator and JSON, which older models put into a fence."""
    head, _, rest = body.removeprefix(f"function{SEPARATOR}").partition(
        SEPARATOR if SEPARATOR in body.removeprefix(f"function{SEPARATOR}") else "\n"
    )
    return all_or_none([ToolCall.of(head.strip(), parse_json(_FENCE.sub("", rest)))])


def harmony_calls(body: str, tools: Tools) -> Calls:
    """Read the name, the kind of text that follows, and JSON."""
    head, _, rest = body.partition("<|message|>")
    words = head.replace("<|constrain|>", " ").split()
    return all_or_none([ToolCall.of(words[0] if words else "", parse_json(rest))])


# By the names that families' files have for them.
READERS: dict[str, Callable[[str, Tools], Calls]] = {
    conventions.JSON: json_calls,
    conventions.KNOWN_JSON: known_calls,
    conventions.TAGGED: tagged_calls,
    conventions.PYTHON: python_calls,
    conventions.GEMMA: gemma_calls,
    conventions.MISTRAL: mistral_calls,
    conventions.DEEPSEEK: deepseek_calls,
    conventions.HARMONY: harmony_calls,
}
