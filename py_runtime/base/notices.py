"""Notices for users although nothing failed: storage refused, a device was replaced."""

from collections.abc import Callable
from typing import Any

Notice = dict[str, Any]  # kind, text, and facts for programs
Listener = Callable[[Notice], None]

_listeners: list[Listener] = []


def post(kind: str, text: str, **facts: Any) -> None:
    """Post a notice; `text` is for people, `facts` are for programs that listen."""
    for listener in _listeners:
        listener({"kind": kind, "text": text, **facts})


def listen(listener: Listener) -> Callable[[], None]:
    """Register a listener and return the function that removes it."""
    _listeners.append(listener)
    return lambda: _listeners.remove(listener)
