"""Messages as OpenAI writes them, checked, and as a chat template wants them."""

from typing import Any

from py_runtime.base.errors import RequestError

ROLES = ("system", "developer", "user", "assistant", "tool")
Message = dict[str, str]


def parse_messages(given: Any) -> list[Message]:
    """RequestError names the message and the field."""
    if not isinstance(given, list | tuple) or not given:
        raise RequestError("messages must be a list with at least one message", "messages")
    return [_parse(f"messages[{at}]", message) for at, message in enumerate(given)]


def _parse(where: str, message: Any) -> Message:
    if not isinstance(message, dict):
        raise RequestError(f"{where} must be an object with a role and a content", "messages")
    role = message.get("role")
    if role not in ROLES:
        raise RequestError(
            f"{where}.role must be one of {', '.join(ROLES)}, got {role!r}", "messages"
        )
    # Templates know the older name of the two only.
    role = "system" if role == "developer" else role
    return {"role": role, "content": _content(f"{where}.content", message.get("content"))}


def _content(where: str, content: Any) -> str:
    """A text, or a list of parts that are all texts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise RequestError(f"{where} must be a text, got {content!r}", "messages")
    texts = []
    for at, part in enumerate(content):
        text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
        if not isinstance(text, str):
            raise RequestError(f"{where}[{at}] must be a part of type text", "messages")
        texts.append(text)
    return "".join(texts)
