"""Hooked graphs: the same program, in which values that are wanted are not fused away."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from py_runtime.glass.beside import load_beside
from py_runtime.glass.points import HookPoint
from py_runtime.glass.slots import Slot, Wanted, with_slots
from py_runtime.glass.workspace import Workspace
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.graph import Graph
from py_runtime.model import Model
from py_runtime.program import OpCall, Program, TensorValue

KEPT_BYTES = 256 << 20  # on the device; what takes more is read on the way


class HookedGraph:
    """A graph that shares the model's weights and states; use `await load_hooked(…)`."""

    def __init__(self, graph: Graph, kept: Sequence[int], outputs: bool, slots: list[Slot]) -> None:
        self.graph = graph
        self.kept = tuple(kept)  # values that can be read
        places = {value_id: at for at, value_id in enumerate(graph.program.outputs)}
        # Those of the graph, if all are kept until its end.
        self.outputs = [places[value_id] for value_id in kept] if outputs else None
        self.slots = slots
        self._weights: dict[int, np.ndarray] = {}

    def epsilon(self, point: HookPoint) -> float:
        """Return what a norm adds to the mean square."""
        assert point.norm is not None, "of a norm"
        return float(getattr(self.graph.program.values[point.norm.args[2]], "value", 0.0))

    async def norm_weight(self, norm: OpCall) -> np.ndarray:
        """Return the weight of a norm: f32 [W]."""
        weight = norm.args[1]
        if weight not in self._weights:
            is_given = isinstance(self.graph.program.values[weight], TensorValue)
            own = await self.graph.read(weight) if is_given else np.ones(1, np.float32)
            self._weights[weight] = own
        return self._weights[weight]


async def load_hooked(
    model: Model, space: Workspace, kept: Sequence[int], wanted: Sequence[Wanted] = ()
) -> HookedGraph:
    """Return a graph in which these values are kept, and have the wanted slots."""

    async def load() -> tuple[Graph, HookedGraph]:
        program, slots = with_slots(space.program(model), space.anatomy, wanted, "edit")
        own = len(program.outputs)
        values = [program.values[value_id] for value_id in kept]
        sizes = [value.gpu_bytes for value in values if isinstance(value, TensorValue)]
        are_kept = sum(sizes) <= KEPT_BYTES
        others = tuple(value_id for value_id in kept if value_id not in program.outputs)
        outputs = (*program.outputs, *others)
        hooked = replace(program, name=f"{program.name} hooked", outputs=outputs)

        def drop(program: Program, target: KernelTarget) -> Program:
            """Let values go once passes have seen that they are wanted."""
            return replace(program, outputs=program.outputs[:own])

        more = () if are_kept else (drop,)
        graph = await load_beside(model.graph, hooked, model.changes.source, *more)
        return graph, HookedGraph(graph, kept, are_kept, slots)

    return await space.kept(model, (tuple(kept), tuple(wanted)), load)
