"""The ops of a program that must run for some of its outputs."""

from collections.abc import Sequence

import numpy as np

from py_runtime.ops.registry import REGISTRY
from py_runtime.program import Program


def ops_needed(program: Program, wanted: Sequence[int]) -> np.ndarray:
    """Return which ops these outputs need: bool [ops]; those that write in place always are."""
    needed = {program.outputs[index] for index in wanted}
    runs = np.zeros(len(program.ops), bool)
    for index in reversed(range(len(program.ops))):
        call = program.ops[index]
        mutates = bool(REGISTRY[call.name].mutates)
        if mutates or not needed.isdisjoint(program.writes(call)):
            runs[index] = True
            needed.update(program.reads(call))
    return runs
