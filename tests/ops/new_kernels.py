"""The cases that bring an op or a kernel, for a place where each needs to run once.

How they deal with shapes is tried natively, with all cases. In the page the same plans and sources
pass through another bridge and another compiler: there, each of them once is enough.
"""

from collections.abc import Hashable, Iterable

from py_runtime.gpu.kernel_target import FLOATS, KernelTarget
from py_runtime.graph.buffers import GUARANTEED_LIMITS
from py_runtime.graph.builder import Builder, LaunchSpec
from tests.golden import Case

# Software adapters bind 10 buffers, and the smallest of their subgroups have 4 lanes.
PORTABLE = KernelTarget(storage_buffers=10)
MEMORY = KernelTarget(wide=True, storage_buffers=10)
SUBGROUPS = KernelTarget(wide=True, lanes=4, storage_buffers=10)
IN_FLOATS = KernelTarget(wide=True, storage_buffers=10, one_token=FLOATS, many_tokens=FLOATS)
ROOMY = GUARANTEED_LIMITS | {
    "max_compute_invocations_per_workgroup": 256,
    "max_compute_workgroup_storage_size": 32 << 10,
}


def parts_of(case: Case, target: KernelTarget) -> set[Hashable]:
    """Return the names of a case's ops, and its kernels for any shape."""
    program = case.writer.program()
    builder = Builder(program, ROOMY, target)
    builder.build_ops()
    launches = [step.pipeline for step in builder.steps if isinstance(step, LaunchSpec)]
    return {op.name for op in program.ops} | {(one.source, one.constants) for one in launches}


def with_new_kernels(cases: Iterable[Case], target: KernelTarget) -> list[Case]:
    """Return the cases with an op or a kernel that no case before them has."""
    seen: set[Hashable] = set()
    found = []
    for case in cases:
        parts = parts_of(case, target)
        if not parts <= seen:
            found.append(case)
        seen |= parts
    return found


def thinned(cases: Iterable[Case], once: list[Case], first: int = 0) -> list[Case]:
    """Return the cases of `once`, which bring a kernel, and every second of the others.

    All shapes are tried by the portable kernels; by each of the others a half is enough.
    """
    known = {case.name for case in once}
    others = [case for case in cases if case.name not in known]
    return [*once, *others[first::2]]
