"""Variants of a graph: the same plan with other kernels in some of its steps.

A variant has the graph's buffers; only pipelines, bind groups and the plan are its own. The graph
runs as it is until it adopts the variant's plan.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from py_runtime.base.errors import GraphError
from py_runtime.gpu import (
    BindGroup,
    BindGroupSpec,
    Dispatch,
    PipelineSpec,
    Plan,
    PlanStep,
)
from py_runtime.graph.builder import LaunchSpec
from py_runtime.graph.graph import Graph


@dataclass(eq=False)
class Variant:
    """A plan of a graph, and the pipelines that are not the graph's own, by step."""

    graph: Graph
    pipelines: dict[int, PipelineSpec]
    plan: Plan
    steps: list[PlanStep]
    groups: list[BindGroup]

    @classmethod
    async def of(cls, graph: Graph, pipelines: Mapping[int, PipelineSpec]) -> "Variant":
        """Compile and record; ShaderError if a shader does not compile."""
        await graph.compiled()
        numbers = list(pipelines)
        specs = [graph.builder.steps[number] for number in numbers]
        made = await graph.device.create_compute_pipelines([pipelines[each] for each in numbers])
        wanted = []
        for spec, pipeline in zip(specs, made, strict=True):
            if not isinstance(spec, LaunchSpec):
                raise GraphError("a copy has no kernel that could be another")
            bindings = tuple(graph.placed.binding(spec, each) for _, each in spec.bindings)
            names = tuple(name for name, _ in spec.bindings)
            wanted.append(BindGroupSpec(spec.launch.label, pipeline, bindings, names))
        groups = await graph.device.create_bind_groups(wanted)
        steps = list(graph.recorded_steps)
        for number, pipeline, group in zip(numbers, made, groups, strict=True):
            steps[number] = Dispatch(group.label, pipeline, group)
        plan = graph.device.create_plan(graph.program.name, steps)
        return cls(graph, dict(pipelines), plan, steps, groups)

    def release(self) -> None:
        """Drop what is the variant's own; the graph must not run it any more."""
        self.graph.device.release([self.plan, *self.groups])
