"""Graphs beside a model's own, with the ops and kernels that users put into that."""

from typing import Any

from py_runtime.gpu import PipelineSpec
from py_runtime.graph import Graph
from py_runtime.graph.builder import LaunchSpec
from py_runtime.passes import Pass
from py_runtime.program import Program


async def load_beside(base: Graph, program: Program, constants: Any, *more: Pass) -> Graph:
    """Load a program like the base's, by its passes and these, and with its changed kernels."""
    graph = await Graph.load(
        base.device, program, constants, base=base, passes=(*base.passes, *more)
    )
    try:
        await _take_kernels(base, graph)
    except BaseException:
        graph.unload()
        raise
    return graph


async def _take_kernels(base: Graph, graph: Graph) -> None:
    """Let a graph run the kernels that the kernel lab put into another one.

    One that was changed in some of its launches only stays the engine's own: there is no telling
    which launches of another graph are these.
    """
    changed = _changed_kernels(base)
    steps = {
        step: changed[spec.pipeline]
        for step, spec in enumerate(graph.builder.steps)
        if isinstance(spec, LaunchSpec) and spec.pipeline in changed
    }
    if steps:
        graph.adopt(await graph.with_kernels(steps))


def _changed_kernels(base: Graph) -> dict[PipelineSpec, PipelineSpec]:
    """Return what runs in the place of each kernel that was changed wherever it is launched."""
    if base.variant is None:
        return {}
    found: dict[PipelineSpec, set[PipelineSpec]] = {}
    for step, spec in enumerate(base.builder.steps):
        if isinstance(spec, LaunchSpec):
            runs = base.variant.pipelines.get(step, spec.pipeline)
            found.setdefault(spec.pipeline, set()).add(runs)
    return {own: runs.pop() for own, runs in found.items() if len(runs) == 1 and own not in runs}
