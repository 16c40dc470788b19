"""Variants of a graph's plan: the same steps, with other kernels in some of them.

A variant has the graph's buffers; only pipelines, bind groups and the plan are its own. The graph
runs as it is until it adopts the variant.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from py_runtime.base.errors import GraphError
from py_runtime.gpu import (
    BindGroup,
    BindGroupSpec,
    Device,
    Dispatch,
    PipelineSpec,
    Plan,
    PlanStep,
)
from py_runtime.graph.builder import Builder, LaunchSpec
from py_runtime.graph.placement import Placement


@dataclass(eq=False)
class Variant:
    """A plan, and the pipelines that are not the graph's own, by step."""

    device: Device
    pipelines: dict[int, PipelineSpec]
    plan: Plan
    steps: list[PlanStep]
    groups: list[BindGroup]

    def release(self) -> None:
        """Drop what is the variant's own; nobody may run it any more."""
        self.device.release([self.plan, *self.groups])


async def record_variant(
    device: Device,
    builder: Builder,
    placed: Placement,
    recorded: Sequence[PlanStep],
    pipelines: Mapping[int, PipelineSpec],
) -> Variant:
    """Compile and record; ShaderError if a shader does not compile."""
    numbers = list(pipelines)
    made = await device.create_compute_pipelines([pipelines[each] for each in numbers])
    wanted = []
    for number, pipeline in zip(numbers, made, strict=True):
        spec = builder.steps[number]
        if not isinstance(spec, LaunchSpec):
            raise GraphError("a copy has no kernel that could be another")
        bindings = tuple(placed.binding(spec, each) for _, each in spec.bindings)
        names = tuple(name for name, _ in spec.bindings)
        wanted.append(BindGroupSpec(spec.launch.label, pipeline, bindings, names))
    groups = await device.create_bind_groups(wanted)
    steps = list(recorded)
    for number, pipeline, group in zip(numbers, made, groups, strict=True):
        steps[number] = Dispatch(group.label, pipeline, group)
    plan = device.create_plan(builder.program.name, steps)
    return Variant(device, dict(pipelines), plan, steps, groups)
