"""A limit on nested JSON from strangers, which would fail deep inside whatever walks it."""

from typing import Any

from py_runtime.base.errors import RequestError

MAX_DEPTH = 64


def refuse_deep(value: Any, where: str, param: str) -> None:
    """Raise RequestError for lists and objects nested deeper than anybody needs."""
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
