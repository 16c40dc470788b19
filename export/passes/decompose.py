"""The pass that spells ops the engine lacks by ops it has: torch's tables, then spellings.py.

Torch makes the graph functional on the way: no op writes in place any more, and the buffers that
the module writes get their new values at the end.
"""

import torch
from torch.export import ExportedProgram, default_decompositions

from export.passes.spellings import SPELLINGS

aten = torch.ops.aten
# Torch's table has these, but the engine has them, too, or a later pass looks for them.
KEPT = (
    aten.linear.default,
    aten.silu.default,
    aten.hardswish.default,
    aten.scaled_dot_product_attention.default,
)


def decompose(exported: ExportedProgram) -> ExportedProgram:
    """Return a functional program without ops that only torch has."""
    table = default_decompositions()
    for op in KEPT:
        del table[op]
    table.update(SPELLINGS)
    return exported.run_decompositions(table)
