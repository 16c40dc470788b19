"""Concurrent work that starts and ends together."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import AbortedError
from py_runtime.base.platform import IN_PAGE

T = TypeVar("T")
STRETCH = 0.01  # seconds of work in one go: to stop takes the event loop several turns

_turned = 0.0  # when the event loop was let turn
# How it is let turn; in the page the bridge has another way.
_turn: Callable[[], Awaitable[None]] = partial(asyncio.sleep, 0)


def turn_by(way: Callable[[], Awaitable[None]]) -> None:
    """Let the event loop turn in another way from now on."""
    global _turn
    _turn = way


async def aside(is_long: bool, work: Callable[[], T]) -> T:
    """Return what `work` gives; where it is long, without holding up the event loop.

    Natively a thread does long work, so that others are answered meanwhile. The page has no
    threads, and nobody else to answer.
    """
    return await asyncio.to_thread(work) if is_long and not IN_PAGE else work()


async def take_turns() -> None:
    """Let the event loop turn if that is due, so that work hears that it is cancelled.

    Whatever is long calls this between any two of its steps.
    """
    global _turned
    if time.perf_counter() - _turned >= STRETCH:
        await _turn()
        _turned = time.perf_counter()


async def together(*work: Coroutine[Any, Any, T]) -> list[T]:
    """Return all results; the first failure cancels the others and is raised once they stopped."""
    if not work:
        return []
    tasks = [asyncio.ensure_future(_abortable(coroutine)) for coroutine in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        # Each is cancelled once: a second time would break off its cleaning up.
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in done:
        task.result()  # raises what made the others stop
    return [task.result() for task in tasks]


async def until_cancelled(work: Coroutine[Any, Any, T], cancel: CancelToken | None) -> T:
    """Return the result, or raise AbortedError once cancelled work has cleaned up."""
    task = asyncio.ensure_future(_abortable(work))

    def stop() -> None:
        task.cancel()

    if cancel is not None:
        cancel.on_cancel(stop)
    try:
        return await task
    except asyncio.CancelledError:
        if cancel is not None:
            cancel.check()
        raise
    finally:
        if cancel is not None:
            cancel.forget(stop)
        work.close()  # it may never have begun


async def _abortable(work: Coroutine[Any, Any, T]) -> T:
    """Wrap work so that a KeyboardInterrupt is not raised from the event loop as well."""
    try:
        return await work
    except KeyboardInterrupt:
        raise AbortedError() from None
