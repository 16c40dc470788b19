"""What a user should be told although nothing failed: storage refused, a device was replaced."""

from collections.abc import Callable
from typing import Any

Notice = dict[str, Any]  # kind, text, and facts for programs
Listener = Callable[[Notice], None]

_listeners: list[Listener] = []


def post(kind: str, text: str, **facts: Any) -> None:
    """`facts` are for programs that listen; `text` is for people."""
    for listener in _listeners:
        listener({"kind": kind, "text": text, **facts})


def listen(listener: Listener) -> Callable[[], None]:
    """Gives the function that ends it."""
    _listeners.append(listener)
    return lambda: _listeners.remove(listener)
