"""The default model beside the engine, natively or in the page, on behalf of test_goldens.py."""

from typing import Any

import numpy as np

from py_runtime.gpu import Device
from py_runtime.model import Model


async def compute_goldens(
    device: Device, where: str, prompts: list[list[int]], greedy: list[list[int]], steps: int
) -> dict[str, Any]:
    """Return each prompt's last logits, greedy continuations, and what the load cost."""
    heap_before, alive_before = heap_bytes(), device.counters.buffer_bytes_alive
    model = await Model.load(device, where)
    heap_growth = heap_bytes() - heap_before
    try:
        logits = [await model.prefill(prompt) for prompt in prompts]
        continuations = [
            [token async for token in model.greedy(prompt, steps)] for prompt in greedy
        ]
        question = model.chat_tokens([{"role": "user", "content": "What is gravity?"}])
        return {
            "logits": logits,
            "continuations": [np.array(tokens) for tokens in continuations],
            "question": question,
            "text": model.tokenizer.decode(continuations[0]),
            "heap growth": heap_growth,
            "gpu bytes": model.graph.memory.peak,
            "gpu bytes in all": device.counters.buffer_bytes_alive - alive_before,
        }
    finally:
        model.unload()


def heap_bytes() -> int:
    """Return the wasm heap's size in the page; natively nothing of interest."""
    try:
        from inpage_bridge import bridge
    except ImportError:
        return 0
    return int(bridge.heapBytes())
