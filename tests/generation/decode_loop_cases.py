"""The sampling kernel and the decode loop beside the engine, natively or in the page."""

from typing import Any

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.generation.decode_loop import DecodeLoop
from py_runtime.generation.device_sampler import MAX_DRAWS, STATE_HEADER, DeviceSampler
from py_runtime.gpu import BufferSpec, Device, Read
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.model import Model
from py_runtime.sampling import SamplingSettings

ONE_GROUP = np.array([[1, 1, 1]], np.uint32)
NO_CHANGES = np.zeros((0, 2), np.uint32)


async def draw(
    device: Device,
    logits: np.ndarray,
    settings: dict[str, Any],
    prompt: list[int],
    seed: int,
    draws: int,
    wide: bool = False,
) -> np.ndarray:
    """Tokens drawn again and again from the same logits; penalties see the ones before."""
    vocabulary = len(logits)
    specs = [BufferSpec(name, 4 * size) for name, size in (("logits", vocabulary), ("next", 1))]
    buffers = await device.create_buffers([*specs, BufferSpec("arena", 16)])
    sampler = await DeviceSampler.create(device, KernelTarget(wide=wide), vocabulary, *buffers)
    plan = device.create_plan("draws", [sampler.step])
    # JSON keys are texts
    bias = {int(token): value for token, value in settings.pop("logit_bias", {}).items()}
    chosen = SamplingSettings(**settings, logit_bias=bias)
    device.write_buffer(buffers[0], logits)
    device.submit(None, None, sampler.begin(chosen, prompt, [], seed, 0))
    tokens: list[np.ndarray] = []
    for start in range(0, draws, MAX_DRAWS):
        count = min(MAX_DRAWS, draws - start)
        read = Read(sampler.state, 4 * (STATE_HEADER + count))
        (data,) = await device.submit_and_read(
            plan, ONE_GROUP, sampler.batch(NO_CHANGES), [read], count
        )
        tokens.append(data.view(np.uint32)[STATE_HEADER:].copy())
    device.release([plan])
    sampler.unload()
    device.destroy_buffers(buffers)
    return np.concatenate(tokens)


async def loop_and_steps(device: Device, where: str, prompt: list[int], sizes: list[int]) -> Any:
    """Greedy tokens of a loop in batches of these sizes, and of one call after the other."""
    model = await Model.load(device, where)
    loop = await DecodeLoop.create(model.graph)
    await model.graph.compute([np.array([prompt]), np.array([0])], [0])
    device.counters.reset()
    first = loop.first(SamplingSettings(temperature=0), prompt, [], 0, 0)
    tokens = (await first.batch()).tokens
    position = len(prompt)
    for place, size in enumerate(sizes):
        drawing = loop.run(position, size, sum(sizes[place:]))
        tokens += (await drawing.batch()).tokens
        position += drawing.steps
    submits = device.counters.submits
    # The graph is as usable as before: the arena's words that the kernel moved are put right.
    again = await model.session.logits_after([*prompt, *tokens], CancelToken())
    stepped = [token async for token in model.greedy(prompt, len(tokens))]
    fresh = await model.prefill([*prompt, *tokens])
    loop.unload()
    model.unload()
    return {
        "looped": tokens,
        "stepped": stepped,
        "submits": submits,
        "moving": len(loop._stretches[0].changes),
        "difference": float(np.abs(again - fresh).max()),
        "alive": device.counters.buffers_alive,
    }
