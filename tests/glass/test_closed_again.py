"""An engine whose views and changes are all closed again: it is what a fresh load gives."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from inpage import glass
from py_runtime.gpu import Device
from py_runtime.model import Model
from tests.adapters.written import peft_config, random_factors, write_peft
from tests.glass.room import NORM, PROMPT, greedy, loaded, own_norm
from tests.runners import CpuRunner, NativeRunner, wait

pytestmark = pytest.mark.torch

HOOK = "blocks.0.hook_resid_post"
SHADER = "reduce/rms_norm"
Use = Callable[[Model, Path], Awaitable[None]]


async def hooks(model: Model, adapter: Path) -> None:
    await glass.run_with_cache(model, PROMPT)
    doubled = [(HOOK, lambda activation, hook: 2 * activation)]
    await glass.run_with_hooks(model, PROMPT, fwd_hooks=doubled)
    await glass.close(model)


async def lens(model: Model, adapter: Path) -> None:
    await glass.lens(model, PROMPT)
    await glass.score(model, PROMPT)
    await glass.close(model)


async def steering(model: Model, adapter: Path) -> None:
    await glass.steer(model, [{"hook": HOOK, "kind": "scale", "strength": 1.5, "name": "more"}])
    await greedy(model)
    await glass.set_strength(model, "more", 2.0)
    await greedy(model)
    await glass.clear(model)


async def an_adapter(model: Model, adapter: Path) -> None:
    name = await model.adapters.load(str(adapter), 2.0)
    await greedy(model)
    model.adapters.set_strength(name, -1.0)
    await greedy(model)
    await model.adapters.remove(name)


async def a_kept_kernel(model: Model, adapter: Path) -> None:
    lab = glass.kernel_lab(model)
    if not lab.can_edit:
        return
    trial = await lab.try_source(SHADER, lab.own_source(SHADER) + "\n// the same", goldens=False)
    await lab.keep(trial)
    await greedy(model)
    await lab.revert()


async def an_own_op(model: Model, adapter: Path) -> None:
    if not glass.kernel_lab(model).can_edit:
        return
    done = await glass.replace(model, [NORM], own_norm(), goldens=False)
    assert done.ok
    await greedy(model)
    await done.revert()


async def one_over_the_other(model: Model, adapter: Path) -> None:
    """Open them in one order and close them in another, as people do."""
    name = await model.adapters.load(str(adapter), 2.0)
    await glass.steer(model, {"hook": HOOK, "kind": "scale", "strength": 1.5})
    await glass.lens(model, PROMPT)
    await greedy(model)
    await model.adapters.remove(name)
    await glass.run_with_cache(model, PROMPT)
    await glass.clear(model)
    await glass.timeline(model, tokens=1)
    glass.memory_view(model)
    await glass.graph_view(model)
    await glass.close(model)


USES = {
    use.__name__: use
    for use in (hooks, lens, steering, an_adapter, a_kept_kernel, an_own_op, one_over_the_other)
}


async def figures(device: Device, where: Path, *uses: Use, adapter: Path) -> dict[str, Any]:
    """Return what a model is and takes once these were opened and closed, and it was asked."""
    before = device.counters.buffer_bytes_alive, device.counters.buffers_alive
    async with loaded(device, where) as model:
        await greedy(model)
        for use in uses:
            await use(model, adapter)
        await greedy(model)
        device.counters.reset()
        tokens = await greedy(model)
        counters = device.counters
        return {
            "tokens": tokens,
            "program": model.graph.program,
            "passes": model.graph.passes,
            "kernels": [step.label for step in model.graph.plan.steps],
            "changed": (model.overlay, model.changes.are_any, model.graph.variant),
            "has a loop": model.session.can_loop,
            "launches": (counters.submits, counters.dispatches),
            "traffic": (counters.writes, counters.bytes_written, counters.bytes_read),
            "memory": asdict(model.graph.memory),
            "bytes alive": counters.buffer_bytes_alive - before[0],
            "buffers alive": counters.buffers_alive - before[1],
        }


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    factors = random_factors({"layers.0.self_attn.q_proj": (64, 64)}, 4, 1)
    return write_peft(tmp_path_factory.mktemp("adapters") / "own", factors, peft_config(4, 40))


def check(runner: CpuRunner | NativeRunner, where: Path, adapter: Path, *uses: Use) -> None:
    fresh, used = (
        wait(figures(runner.device, where, *some, adapter=adapter)) for some in ((), uses)
    )
    for what, wanted in fresh.items():
        assert used[what] == wanted, what


@pytest.mark.parametrize("name", [*USES, "all of it"])
def test_a_model_on_the_processor_is_as_it_was_loaded(
    name: str, cpu: CpuRunner, toy_model: Path, adapter: Path
) -> None:
    check(cpu, toy_model, adapter, *([USES[name]] if name in USES else USES.values()))


def test_a_model_on_a_gpu_is_as_it_was_loaded(
    native: NativeRunner, toy_model: Path, adapter: Path
) -> None:
    check(native, toy_model, adapter, *USES.values())
