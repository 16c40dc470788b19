"""A model's call of one of the caller's tools."""

import json
import uuid
from dataclasses import dataclass, field
from typing import Any


def new_id() -> str:
    """Return nine letters and digits: Mistral's templates refuse any other length."""
    return uuid.uuid4().hex[:9]


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool; `arguments` is the JSON text of an object."""

    name: str
    arguments: str
    id: str = field(default_factory=new_id)

    @classmethod
    def of(cls, name: Any, arguments: Any) -> "ToolCall | None":
        """Return a call, or None if this is not one or JSON cannot hold it."""
        if not isinstance(name, str) or not name or not isinstance(arguments, dict):
            return None
        try:
            text = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
            (name + text).encode()  # halves of surrogate pairs reach nobody
        except (TypeError, ValueError, RecursionError):
            return None
        return cls(name, text)
