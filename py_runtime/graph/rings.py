"""Ring caches: layers that see a window keep the last positions only."""

from dataclasses import dataclass

from py_runtime.ops.registry import REGISTRY
from py_runtime.program import IntValue, Program, TensorValue


@dataclass(frozen=True)
class Ring:
    """The rows of a ring cache, and how far back a token looks."""

    rows: int
    window: int  # its own position included

    def can_go_on(self, position: int, written: int) -> bool:
        """Return whether the next token may be the one at `position` after `written` tokens.

        Everything it sees must still be there; at 0 there is nothing to see.
        """
        first_seen = max(position + 1 - self.window, 0)
        return position == 0 or first_seen >= written - self.rows


def rings_of(program: Program) -> list[Ring]:
    """Return the rings of a built program, each kind once, including those that never wrap."""
    found: dict[Ring, None] = {}
    for call in program.ops:
        names = REGISTRY[call.name].args
        if not {"window", "k_cache"} <= {*names}:
            continue
        window = program.values[call.args[names.index("window")]]
        cache = program.values[call.args[names.index("k_cache")]]
        if isinstance(window, IntValue) and isinstance(cache, TensorValue):
            found[Ring(cache.dims[-3], window.value)] = None
    return list(found)
