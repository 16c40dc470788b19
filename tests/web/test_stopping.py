"""Stop of a worker that is at work all the time: it is heard in the next turn of the event loop."""

from typing import Any

import pytest

from tests.web.user import User

pytestmark = pytest.mark.browser

PRESSES = 5
BEGIN = """
from js import BroadcastChannel, performance

begun = []
def begin():
    begun.append(performance.timeOrigin + performance.now())
    if len(begun) == 10:
        BroadcastChannel.new("at work").postMessage("")
"""
# Of Python's own turns, which could all come before a message; a hundred that wait make it sure.
TAKING_TURNS = """
import asyncio
from py_runtime.base import concurrency

async def work():
    await asyncio.gather(*(asyncio.sleep(0) for _ in range(100)))
    while True:
        begin()
        until = performance.now() + 2
        while performance.now() < until: pass
        await concurrency.take_turns()

own = concurrency.STRETCH
concurrency.STRETCH = 0.0
try:
    await work()
finally:
    concurrency.STRETCH = own
"""
PRESS = """async code => {
    const controller = new AbortController();
    const isAtWork = new Promise(then => { new BroadcastChannel("at work").onmessage = then; });
    const ended = inpage.python(code, { signal: controller.signal }).catch(error => error.code);
    await isAtWork;
    controller.abort();
    const pressed = performance.timeOrigin + performance.now();
    return [await ended, await inpage.python(`sum(at > ${pressed} for at in begun)`)];
}"""


def test_stop_is_heard_between_two_pieces_of_work(fresh: User) -> None:
    presses: list[Any] = [fresh.page.evaluate(PRESS, BEGIN + TAKING_TURNS) for _ in range(PRESSES)]
    assert all(ended == "aborted" for ended, _ in presses), presses
    assert max(pieces for _, pieces in presses) <= 2, presses
