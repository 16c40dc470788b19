"""Many short answers and many loads, natively: what is alive afterwards is what was alive before.

    python -m tests.model.soak    # 10,000 answers and 200 loads of the toy, as in weeks of use

`make test` does the same with fewer (test_soak.py).
"""

import asyncio
import gc
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py_runtime.app.software_gpu import use_browsers_vulkan
from py_runtime.gpu import Device, request_device
from py_runtime.model import Model
from tests.toy_model import write_toy_model

ANSWERS, LOADS = 10_000, 200
FIELDS: dict[str, Any] = {"temperature": 0, "max_tokens": 3, "ignore_eos": True}
NOISE = 200  # Python objects that come and go by themselves


@dataclass(frozen=True)
class Alive:
    """The counts that a leak would increase."""

    buffers: int
    bytes: int
    objects: int

    @classmethod
    def now(cls, device: Device) -> "Alive":
        gc.collect()
        counters = device.counters
        return cls(counters.buffers_alive, counters.buffer_bytes_alive, len(gc.get_objects()))

    def grown_since(self, before: "Alive") -> list[str]:
        grown = []
        if self.buffers > before.buffers or self.bytes > before.bytes:
            grown.append(f"GPU buffers: {before.buffers} became {self.buffers}")
        if self.objects > before.objects + NOISE:
            grown.append(f"Python objects: {before.objects} became {self.objects}")
        return grown


async def answer(model: Model, count: int) -> None:
    """Messages differ, so that each answer rolls the cache back and prefills."""
    for number in range(count):
        messages = [{"role": "user", "content": f"turn {number % 50}"}]
        async for _ in model.chat(messages, **FIELDS):
            pass


async def load(device: Device, where: str, count: int) -> None:
    for _ in range(count):
        model = await Model.load(device, where)
        await answer(model, 1)
        model.unload()


async def soak(device: Device, where: str, answers: int, loads: int) -> list[str]:
    """Return what grew; the first tenth of each warms caches up."""
    await load(device, where, max(loads // 10, 2))
    before = Alive.now(device)
    await load(device, where, loads)
    grown = Alive.now(device).grown_since(before)
    model = await Model.load(device, where)
    await answer(model, max(answers // 10, 60))
    before = Alive.now(device)
    await answer(model, answers)
    grown += Alive.now(device).grown_since(before)
    model.unload()
    return grown


async def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        where = write_toy_model(Path(folder))
        grown = await soak(await request_device(), str(where), ANSWERS, LOADS)
    print("\n".join(grown) or f"{ANSWERS:,} answers and {LOADS} loads: nothing grew")
    return 1 if grown else 0


if __name__ == "__main__":
    use_browsers_vulkan()
    sys.exit(asyncio.run(main()))
