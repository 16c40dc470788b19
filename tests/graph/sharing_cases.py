"""Graphs that share with another one, natively or in the page, on behalf of the tests here."""

from typing import Any

import numpy as np

from py_runtime.base.errors import GraphError
from py_runtime.gpu import Device
from py_runtime.graph import Graph
from py_runtime.model import Model

TOKENS = np.arange(3, 40, dtype=np.int64)[None]


async def derive(device: Device, where: str) -> dict[str, Any]:
    """Return what a graph gives alone and beside its base, and what the second one takes."""
    model = await Model.load(device, where)
    base, program = model.graph, model.folder.program
    alive, alive_bytes = device.counters.buffers_alive, device.counters.buffer_bytes_alive
    (wanted,) = await base.run([TOKENS, np.array([0])])
    alike = await Graph.load(device, program, base=base)
    of_alike = device.counters.buffer_bytes_alive - alive_bytes
    (from_alike,) = await alike.run([TOKENS, np.array([0])])
    alike.unload()
    unfused = await Graph.load(device, program, base=base, passes=())
    (from_unfused,) = await unfused.run([TOKENS[:, :20], np.array([0])])
    # The base goes on where the other one has filled its caches.
    (gone_on,) = await base.run([TOKENS[:, 20:], np.array([20])])
    unfused.unload()
    left = device.counters.buffers_alive - alive
    derived = await Graph.load(device, program, base=base)
    model.unload()
    ended = ""
    try:
        await derived.run([TOKENS, np.array([0])])
    except GraphError as error:
        ended = str(error)
    derived.unload()
    return {
        "logits": [wanted, from_alike, gone_on],
        "short": from_unfused,
        "constants": np.array([alike.memory.constants, alike.memory.state, of_alike]),
        "left": np.array(left),
        "ended": ended,
    }
