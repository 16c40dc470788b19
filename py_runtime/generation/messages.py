"""Messages in OpenAI's form, checked, and in the form that chat templates take."""

import json
from typing import Any

from py_runtime.base.errors import RequestError
from py_runtime.base.nesting import refuse_deep
from py_runtime.base.short_texts import short
from py_runtime.vision.picture import MARK, Picture, picture_of

UNKNOWN = "\ufffd"  # in place of what only this module writes
ROLES = ("system", "developer", "user", "assistant", "tool")
THOUGHTS = ("reasoning_content", "reasoning")  # servers and clients call them so
Message = dict[str, Any]  # role and content are texts; pictures of a content are its `images`
IMAGE_PARTS = ("image_url", "image")


def parse_messages(given: Any) -> list[Message]:
    """Check messages; RequestError names the message and the field."""
    if not isinstance(given, list | tuple) or not given:
        raise RequestError("messages must be a list with at least one message", "messages")
    messages = [_parse(f"messages[{at}]", message) for at, message in enumerate(given)]
    _name_results(messages)
    return messages


def _parse(where: str, message: Any) -> Message:
    if not isinstance(message, dict):
        raise RequestError(f"{where} must be an object with a role and a content", "messages")
    role = message.get("role")
    if role not in ROLES:
        raise RequestError(
            f"{where}.role must be one of {', '.join(ROLES)}, got {short(role)}", "messages"
        )
    # Templates know the older name of the two only.
    parsed: Message = {"role": "system" if role == "developer" else role}
    content, calls = message.get("content"), message.get("tool_calls")
    is_silent = role == "assistant" and content is None and bool(calls)
    pictures: list[Picture] = []
    parsed["content"] = "" if is_silent else _content(f"{where}.content", content, pictures)
    if pictures:
        parsed["images"] = pictures
    if role == "tool":
        parsed |= _texts(where, message, ("tool_call_id", "name"))
    if role == "assistant":
        if calls:
            parsed["tool_calls"] = _calls(f"{where}.tool_calls", calls)
        thoughts = list(_texts(where, message, THOUGHTS).values())
        if thoughts:
            parsed["reasoning_content"] = thoughts[0]
    return parsed


def _content(where: str, content: Any, pictures: list[Picture]) -> str:
    """Return the content: a text, or the texts of a list of parts, with marks for its pictures."""
    if isinstance(content, str):
        return content.replace(MARK, UNKNOWN)
    if not isinstance(content, list):
        raise RequestError(f"{where} must be a text, got {short(content)}", "messages")
    texts = []
    for at, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in IMAGE_PARTS:
            pictures.append(picture_of(part, f"{where}[{at}]"))
            texts.append(MARK)
            continue
        text = part.get("text") if kind == "text" else None
        if not isinstance(text, str):
            raise RequestError(f"{where}[{at}] must be a part of type text", "messages")
        texts.append(text.replace(MARK, UNKNOWN))
    return "".join(texts)


def _texts(where: str, message: dict[str, Any], names: tuple[str, ...]) -> dict[str, str]:
    """Return those of these fields that are present."""
    found = {name: message[name] for name in names if message.get(name) is not None}
    for name, value in found.items():
        if not isinstance(value, str):
            raise RequestError(f"{where}.{name} must be a text, got {value!r:.100}", "messages")
    return found


def _calls(where: str, calls: Any) -> list[dict[str, Any]]:
    if not isinstance(calls, list):
        raise RequestError(f"{where} must be a list of calls", "messages")
    return [_call(f"{where}[{at}]", call) for at, call in enumerate(calls)]


def _call(where: str, call: Any) -> dict[str, Any]:
    """Convert a tool call; arguments become an object, which templates write as JSON."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise RequestError(f"{where} must be a call of a function with a name", "messages")
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            arguments = None
    if not isinstance(arguments, dict):
        raise RequestError(
            f"{where}.function.arguments must be the JSON text of an object", "messages"
        )
    refuse_deep(arguments, f"{where}.function.arguments", "messages")
    named = {"name": function["name"], "arguments": arguments}
    return {**_texts(where, call, ("id",)), "type": "function", "function": named}


def _name_results(messages: list[Message]) -> None:
    """Name the tool of each result: requests name its call, some templates write the tool."""
    names = {
        call.get("id"): call["function"]["name"]
        for message in messages
        for call in message.get("tool_calls", ())
    }
    for message in messages:
        name = names.get(message.get("tool_call_id"))
        if message["role"] == "tool" and name is not None:
            message.setdefault("name", name)
