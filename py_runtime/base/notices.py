"""Notices for users although nothing failed: storage refused, a device was replaced."""

from collections.abc import Callable
from typing import Any

from py_runtime.base.messages import Message, worded

Notice = dict[str, Any]  # kind, code, facts, the same as a text, and more for programs
Listener = Callable[[Notice], None]

_listeners: list[Listener] = []


def post(kind: str, said: Message, **more: Any) -> None:
    """Post a notice; `said` is for people, `more` for programs that listen."""
    for listener in _listeners:
        listener({"kind": kind, **said, "text": worded(said), **more})


def listen(listener: Listener) -> Callable[[], None]:
    """Register a listener and return the function that removes it."""
    _listeners.append(listener)
    return lambda: _listeners.remove(listener)
