"""A lock that tabs share is given back by whoever is cancelled while it is being granted."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from py_runtime.bridge.locks import SharedLock
from tests.runners import wait

Grant = Callable[[None], Coroutine[Any, Any, None]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Grant]:
    """Stand in for the browser; return what it is to call once a lock is free."""
    asked: list[Grant] = []
    locks = SimpleNamespace(request=lambda name, grant: asked.append(grant))
    navigator = SimpleNamespace(locks=locks)
    monkeypatch.setitem(sys.modules, "js", SimpleNamespace(navigator=navigator))
    ffi = SimpleNamespace(create_once_callable=lambda function: function)
    monkeypatch.setitem(sys.modules, "pyodide.ffi", ffi)
    return asked


@pytest.mark.parametrize("is_granted_first", [True, False])
def test_whoever_is_cancelled_leaves_the_lock_free(
    asked: list[Grant], is_granted_first: bool
) -> None:
    async def cancel_while_it_is_granted() -> None:
        waiting = asyncio.ensure_future(SharedLock("test").acquire())
        while not asked:
            await asyncio.sleep(0)
        holding = asyncio.ensure_future(asked[0](None))
        if is_granted_first:
            await asyncio.sleep(0)  # the browser has granted it, and who waits has not heard yet
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        for _ in range(5):
            await asyncio.sleep(0)
        assert holding.done(), "the browser would wait for ever, and so would other tabs"

    wait(cancel_while_it_is_granted())
