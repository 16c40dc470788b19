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
# Of slices of a plan that takes for ever.
COMPUTING = """
from js import Object
from pyodide.ffi import create_proxy
from py_runtime.cpu import page
from py_runtime.gpu import Read

def replay(steps, counts, first, last, deadline):
    begin()
    while performance.now() < deadline: pass
    return own.replay(steps, counts, first, last, deadline)

graph = model.graph
await graph.run(await model.session.inputs([1], 0))
machine = page._cpu.machines.get(graph.device._machine._handle)
own, slow = machine.exports, create_proxy(replay)
machine.exports = Object.assign(Object.new(), own)
machine.exports.replay = slow
counts = graph.live_counts(tuple(range(len(graph.program.outputs))))
read = [Read(graph.buffer(graph.program.outputs[0]), 4)]
try:
    await graph.device.submit_to_read(graph.plan, counts, [], read, 10**6)
finally:
    machine.exports = own
    machine.jobs.splice(0)
    slow.destroy()
    model.session.forget()
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


@pytest.mark.parametrize("work", [TAKING_TURNS, COMPUTING], ids=["turns", "slices"])
def test_stop_is_heard_between_two_pieces_of_work(user: User, work: str) -> None:
    presses: list[Any] = [user.page.evaluate(PRESS, BEGIN + work) for _ in range(PRESSES)]
    assert all(ended == "aborted" for ended, _ in presses), presses
    assert max(pieces for _, pieces in presses) <= 2, presses
