"""Coroutines that never wait, run where they are called: signals reach the main thread alone."""

from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def result_of(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        coroutine.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    coroutine.close()
    raise AssertionError("it waits for something")


def all_of(items: AsyncIterator[T]) -> list[T]:
    async def collect() -> list[T]:
        return [item async for item in items]

    return result_of(collect())
