"""The passes over a module's graph, between torch.export and the engine's program, in order."""

from collections.abc import Callable

from export.module_graph import ModuleGraph
from export.passes.attention import attention
from export.passes.fold_constants import fold_constants
from export.passes.fuse_cached_attention import fuse_cached_attention
from export.passes.fuse_rms_norm import fuse_rms_norm
from export.passes.fuse_rope import fuse_rope
from export.passes.index_writes import index_writes
from export.passes.match_dtypes import match_dtypes
from export.passes.scatters import scatters
from export.passes.share_repeats import share_repeats
from export.passes.simplify import simplify
from export.passes.write_buffers import restore_in_place_calls, write_buffers

Pass = Callable[[ModuleGraph], None]

PASSES: tuple[Pass, ...] = (
    # The graph is functional: nothing is written in place, and order does not matter.
    simplify,
    share_repeats,
    fold_constants,
    index_writes,
    fuse_rms_norm,
    fuse_rope,
    fuse_cached_attention,
    attention,
    fold_constants,
    simplify,
    share_repeats,
    # From here on ops write buffers in place.
    restore_in_place_calls,
    write_buffers,
    scatters,
    match_dtypes,
)


def run_passes(graph: ModuleGraph) -> None:
    """Run all passes, in place and in this order."""
    for each in PASSES:
        each(graph)
