"""The cases that bring an op or a part of a kernel, for a place where each needs to run once.

How they deal with shapes is tried natively, with all cases. In the page the same plans and sources
pass through another bridge and another compiler: there, each op, each kernel and each fragment that
is plugged into it is enough: which of them meet is tried natively.
"""

from collections.abc import Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import cache

from py_runtime.gpu.kernel_sources import KernelSource
from py_runtime.gpu.kernel_target import (
    FLOAT_KERNELS,
    FLOATS,
    MEMORY_KERNELS,
    PORTABLE_KERNELS,
    SUBGROUP_KERNELS,
    KernelTarget,
)
from py_runtime.graph.buffers import GUARANTEED_LIMITS
from py_runtime.graph.builder import Builder
from py_runtime.live.build_context import Caller
from py_runtime.live.launch import Bindable, Launch
from py_runtime.passes import DEFAULT_PASSES, run_passes
from py_runtime.program import Program
from tests.golden import Case

# Software adapters bind 10 buffers, and the smallest of their subgroups have 4 lanes.
PORTABLE = KernelTarget(storage_buffers=10)
MEMORY = KernelTarget(wide=True, storage_buffers=10)
SUBGROUPS = KernelTarget(wide=True, lanes=4, storage_buffers=10)
IN_FLOATS = KernelTarget(wide=True, storage_buffers=10, one_token=FLOATS, many_tokens=FLOATS)
TARGETS = {
    PORTABLE_KERNELS: PORTABLE,
    MEMORY_KERNELS: MEMORY,
    SUBGROUP_KERNELS: SUBGROUPS,
    FLOAT_KERNELS: IN_FLOATS,
}
ROOMY = GUARANTEED_LIMITS | {
    "max_compute_invocations_per_workgroup": 256,
    "max_compute_workgroup_storage_size": 32 << 10,
}
# What every device allows, at WebGPU's compatibility level, too.
LEAST = {
    "max_compute_invocations_per_workgroup": 128,
    "max_compute_workgroup_storage_size": 16 << 10,
}
Parts = AbstractSet[Hashable]


class PartsBuilder(Builder):
    """A builder that keeps the parts of what is launched."""

    def __init__(self, program: Program, limits: dict[str, int], target: KernelTarget) -> None:
        super().__init__(program, limits, target)
        self.parts: set[Hashable] = set()

    def launch(
        self,
        op: Caller,
        kernel: str | KernelSource,
        plugs: Mapping[str, str],
        bind: Mapping[str, Bindable],
        constants: Mapping[str, float],
    ) -> Launch:
        assert isinstance(kernel, str), "no case has a user's own op"
        self.parts |= {(kernel, *constants.items()), *((kernel, *plug) for plug in plugs.items())}
        return super().launch(op, kernel, plugs, bind, constants)


def parts_of(case: Case, target: KernelTarget, limits: dict[str, int] = ROOMY) -> Parts:
    """Return the names of a case's ops, and its kernels for any shape: their plugs one by one."""
    return _parts_of(case, target, tuple(limits.items()))


@cache  # several files ask about the same cases
def _parts_of(case: Case, target: KernelTarget, limits: tuple[tuple[str, int], ...]) -> Parts:
    written = case.writer.program()
    program = run_passes(written, target, DEFAULT_PASSES)
    builder = PartsBuilder(program, GUARANTEED_LIMITS | dict(limits), target)
    builder.build_ops()
    return builder.parts | {op.name for op in written.ops}


def all_parts_of(cases: Iterable[Case], target: KernelTarget) -> Parts:
    return {part for case in cases for part in parts_of(case, target)}


def with_new_kernels(
    cases: Iterable[Case],
    target: KernelTarget,
    known: Parts = frozenset(),
    limits: dict[str, int] = ROOMY,
) -> list[Case]:
    """Return the cases with an op or a part that is not known and that none before them has."""
    seen = set(known)
    found = []
    for case in cases:
        parts = parts_of(case, target, limits)
        if not parts <= seen:
            found.append(case)
        seen |= parts
    return found


def alone(parts: Parts) -> Parts:
    """Return ops, kernels and what is plugged into their slots, whichever of them meet."""
    found: set[Hashable] = set()
    for part in parts:
        match part:
            case (str(kernel), str(slot), str(fragment)):
                found |= {kernel, (slot, fragment)}
            case (str(kernel), *_):
                found.add(kernel)
            case op:
                found.add(op)
    return found


def with_new_names(cases: Iterable[Case], target: KernelTarget, known: Parts) -> list[Case]:
    """Return the cases with an op, a kernel or a fragment that neither known parts nor others have.

    The page's compiler takes all that can meet in gpu/test_compiled_in_page.py.
    """
    seen = set(alone(known))
    found = []
    for case in cases:
        parts = alone(parts_of(case, target))
        if not parts <= seen:
            found.append(case)
        seen |= parts
    return found


def thinned(cases: Iterable[Case], once: list[Case], first: int = 0) -> list[Case]:
    """Return the cases of `once`, which bring a part, and every third of the others.

    All shapes are tried by the portable kernels; by each of the others a third is enough.
    """
    known = {case.name for case in once}
    others = [case for case in cases if case.name not in known]
    return [*once, *others[first::3]]
