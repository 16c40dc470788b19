"""JSON of strangers that is nested without end: what walks into it would fail deep inside."""

from typing import Any

from py_runtime.base.errors import RequestError

MAX_DEPTH = 64


def refuse_deep(value: Any, where: str, param: str) -> None:
    """RequestError: lists and objects inside one another, deeper than anybody needs."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise RequestError(f"{where} is nested more than {MAX_DEPTH} levels deep", param)
