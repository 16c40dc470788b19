"""An adapter as the engine has it: for each linear two factors and a scale."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from py_runtime.adapters.errors import AdapterError
from py_runtime.base.shapes import Dims
from py_runtime.base.short_texts import short
from py_runtime.passes.add_low_rank import Update

MAX_RANK = 1024
MAX_ALPHA = 1e6
MAX_NUMBER = 1e30  # of a factor: times any scale, it is a float still
QUERIES, GATES = "self_attn.q_proj", "self_attn.g_proj"


@dataclass(frozen=True, eq=False)
class LowRank:
    """The factors for one module, as the file has them: scale * up · down."""

    stored: str  # the module's name in the file
    down: np.ndarray  # [rank, columns]
    up: np.ndarray  # [rows, rank]
    scale: float


@dataclass(frozen=True, eq=False)
class Adapter:
    """An adapter: its parts by the decoder's linears that each is for, in their order.

    A part for several linears has the rows of all, one after the other; for queries and the gates
    of attention they take turns, head by head.
    """

    file: str
    parts: Mapping[tuple[str, ...], LowRank]
    is_gguf: bool = False  # heads of linear attention may lie in another order there

    def updates(self, number: int, linears: Mapping[str, Dims], head_dim: int) -> dict[str, Update]:
        """Return what is added to each linear; AdapterError names what does not fit.

        `linears` are the model's, [rows, columns] by name.
        """
        found: dict[str, Update] = {}
        for names, part in self.parts.items():
            missing = [name for name in names if name not in linears]
            if missing:
                raise AdapterError(
                    f"{self.file} has {short(part.stored)}, but this model has no linear "
                    f"{missing[0]}",
                    "load the model that it was trained for",
                )
            rows = sum(linears[name][0] for name in names)
            columns = linears[names[0]][1]
            rank = len(part.down)
            if part.down.shape != (rank, columns) or part.up.shape != (rows, rank):
                raise AdapterError(
                    f"{self.file}: {short(part.stored)} adds {list(part.up.shape)} x "
                    f"{list(part.down.shape)}, but the weight of {' + '.join(names)} is "
                    f"[{rows}, {columns}]",
                    "load the model that it was trained for",
                )
            up, first = part.up, 0
            if names[0].endswith(QUERIES) and names[-1].endswith(GATES):
                turns = up.reshape(-1, 2, head_dim, rank)
                up = np.concatenate([turns[:, 0].reshape(-1, rank), turns[:, 1].reshape(-1, rank)])
            for name in names:
                end = first + linears[name][0]
                found[name] = Update(number, part.down, up[first:end], part.scale)
                first = end
        return found


def check_factors(file: str, stored: str, down: np.ndarray, up: np.ndarray) -> None:
    """Refuse factors that do not fit each other."""
    if down.ndim != 2 or up.ndim != 2 or down.shape[0] != up.shape[1]:
        raise AdapterError(
            f"{file}: the factors of {short(stored)} are {list(down.shape)} and {list(up.shape)}, "
            "which do not fit each other"
        )
    if not 0 < len(down) <= MAX_RANK:
        raise AdapterError(
            f"{file}: {short(stored)} has the rank {len(down)}; 1 to {MAX_RANK} are taken"
        )
    if max(np.abs(each).max(initial=0) for each in (down, up)) > MAX_NUMBER:
        raise AdapterError(f"{file}: {short(stored)} has numbers beyond {MAX_NUMBER:g}")


def renamed(adapter: Adapter, owners: Mapping[str, str]) -> Adapter:
    """Return the adapter with some linears by other names: a tied head is the embedding's."""
    parts: dict[tuple[str, ...], LowRank] = {}
    for names, part in adapter.parts.items():
        parts[tuple(owners.get(name, name) for name in names)] = part
    return replace(adapter, parts=parts)
