"""Passes over a program before it is built: they fuse chains of ops and shrink caches.

A pass finds patterns of ops, in any model. It keeps what it cannot fuse as it is, and every value
that something else reads. `Graph.load(…, passes=())` runs a program as it was exported.
"""

from collections.abc import Callable, Sequence

from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.passes import (
    fold_norms,
    fold_sums,
    fuse_attend_linear,
    fuse_delta_gates,
    fuse_gated_part,
    fuse_norm_residual,
    fuse_qkv,
    fuse_residual,
    fuse_swiglu,
    ring_caches,
    type_caches,
)
from py_runtime.program import Program

Pass = Callable[[Program, KernelTarget], Program]

DEFAULT_PASSES: tuple[Pass, ...] = (
    ring_caches.run,  # while one op reads and writes them
    fuse_swiglu.run,
    fuse_qkv.run,
    fuse_delta_gates.run,
    fuse_gated_part.run,
    fold_norms.run,  # into what fuse_swiglu and fuse_qkv have made
    fuse_residual.run,
    fuse_norm_residual.run,
    fuse_attend_linear.run,
    fold_sums.run,  # which fuse_norm_residual has made
    type_caches.run,  # once it is clear which ops look at them
)


# Where passes that add to linears come: behind those that join the ones of one x.
JOINING = DEFAULT_PASSES.index(fuse_delta_gates.run) + 1


def run_passes(program: Program, target: KernelTarget, passes: Sequence[Pass]) -> Program:
    """Run the passes in this order and return the resulting program."""
    for run in passes:
        program = run(program, target)
    return program
