"""The tokens that a view is of, from a text, messages or tokens."""

from collections.abc import Sequence
from typing import Any

from py_runtime.base.errors import ContextLengthError, RequestError, most_counted
from py_runtime.model import Model


def tokens_of(model: Model, given: Any, prepend_bos: bool | None = None) -> list[int]:
    """Return the tokens of a text, of messages in OpenAI's form, or the tokens themselves.

    `prepend_bos=False` leaves out the special tokens that the tokenizer puts around a text. Arrays
    and lists of one batch are taken, too.
    """
    if hasattr(given, "tolist"):
        given = given.tolist()
    if isinstance(given, str):
        special = prepend_bos is not False
        given = model.tokenizer.encode(given, special, most=most_counted(model.context))
    elif _is_list(given) and len(given) == 1 and _is_list(given[0]):
        given = given[0]
    elif _is_list(given) and given and isinstance(given[0], dict):
        given = model.chat_tokens(given)
    tokens = model.prompt_tokens(given)
    if len(tokens) > model.context:
        raise ContextLengthError(len(tokens), model.context)
    return tokens


def given_tokens(model: Model, fields: dict[str, Any]) -> list[int]:
    """Take `tokens`, `text` or `messages` out of a request."""
    found = [name for name in ("tokens", "text", "messages") if fields.get(name) is not None]
    if len(found) != 1:
        raise RequestError("give either tokens, text or messages", "tokens")
    values = {name: fields.pop(name, None) for name in ("tokens", "text", "messages")}
    if found[0] == "text" and not isinstance(values["text"], str):
        raise RequestError("text must be a text", "text")
    if found[0] == "messages":
        from py_runtime.generation.messages import parse_messages

        return tokens_of(model, parse_messages(values["messages"]))
    return tokens_of(model, values[found[0]])


def texts_of(model: Model, tokens: Sequence[int]) -> list[str]:
    """Return the text of each token, special ones as they are spelt."""
    known: dict[int, str] = {}
    for token in tokens:
        if token not in known:
            known[token] = model.tokenizer.decode([token], skip_special_tokens=False)
    return [known[token] for token in tokens]


def _is_list(given: Any) -> bool:
    return isinstance(given, Sequence) and not isinstance(given, str | bytes)
