"""A pass that adds low-rank adapters (LoRA) to linears: inpage.low_rank, as a bias for each token.

It comes after linears of one x were joined, so that one call serves all of them, and their weights
stay as they lie.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from py_runtime.base.shapes import Dims, round_up
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.passes.chain import CallAt, Chain
from py_runtime.passes.linear_calls import LINEARS
from py_runtime.program import OpCall, Program, ValueListValue, op_names

Floats = NDArray[np.float32]

JOINED = (
    op_names.QKV_ROTARY_CACHE,
    "inpage.q_rotary.default",
    "inpage.swiglu.default",
    "inpage.geglu.default",
    "inpage.joined_linears.default",
)
RANKS_AT_ONCE = 4  # columns that kernels read together


@dataclass(frozen=True, eq=False)
class Update:
    """An adapter's part for one linear: scale * up · down is added to its weight."""

    adapter: int  # its number, which decides the strength it gets
    down: np.ndarray  # [rank, columns], of any float type
    up: np.ndarray  # [rows, rank]
    scale: float

    @property
    def rank(self) -> int:
        return len(self.down)


Part = tuple[int, Update]  # the first of its weight's rows, among those of a call


@dataclass(frozen=True, eq=False)
class Downs:
    """The first factors of several updates, one below the other: [ranks, columns]."""

    updates: Sequence[Update]
    shape: Dims
    dtype = np.dtype(np.float32)

    def __array__(self, *given: Any, **how: Any) -> Floats:
        whole = np.zeros(self.shape, np.float32)
        first = 0
        for update in self.updates:
            whole[first : first + update.rank] = update.down
            first += update.rank
        return whole


@dataclass(frozen=True, eq=False)
class Ups:
    """The second factors, each in the rows of its own weight: [rows, ranks], scaled."""

    parts: Sequence[Part]
    shape: Dims
    dtype = np.dtype(np.float32)

    def __array__(self, *given: Any, **how: Any) -> Floats:
        whole = np.zeros(self.shape, np.float32)
        first = 0
        for row, update in self.parts:
            end = first + update.rank
            whole[row : row + len(update.up), first:end] = update.up
            whole[row : row + len(update.up), first:end] *= np.float32(update.scale)
            first = end
        return whole


@dataclass
class AddLowRank:
    """The pass for some updates, by the owner of a weight; its run fills the other fields."""

    updates: Mapping[str, Sequence[Update]]
    arrays: dict[str, Downs | Ups] = field(default_factory=dict)  # constants that it adds
    # Constants of strengths: the adapter of each rank, -1 for ranks that only fill up.
    strengths: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def __call__(self, program: Program, target: KernelTarget) -> Program:
        """Add to each linear what the adapters have for it."""
        chain = Chain(program)
        for made in chain.calls_of(*LINEARS, *JOINED):
            weights = self._weights(chain, made.call)
            parts: list[Part] = []
            row = 0
            for weight in weights:
                constant = chain.constant(weight)
                name = "" if constant is None else constant.constant or ""
                parts += [(row, each) for each in self.updates.get(owner_of(name), ())]
                row += chain.dims(weight)[0]
            if parts:
                self._add(chain, made, parts, row)
        return chain.program()

    def _weights(self, chain: Chain, call: OpCall) -> tuple[int, ...]:
        if call.name in LINEARS:
            return (chain.arg(call, "weight"),)
        listed = chain.values[chain.arg(call, "weights")]
        return listed.ids if isinstance(listed, ValueListValue) else ()

    def _add(self, chain: Chain, made: CallAt, parts: list[Part], rows: int) -> None:
        at, call = made
        x = chain.arg(call, "x")
        bias = "bias" if call.name in LINEARS else "biases"
        given = chain.arg(call, bias)
        biases = chain.add([given]) if bias == "bias" and not chain.is_null(given) else given
        ranks = round_up(sum(update.rank for _, update in parts), RANKS_AT_ONCE)
        down = Downs([update for _, update in parts], (ranks, chain.dims(x)[-1]))
        owners = "+".join(
            owner_of(constant.constant or "")
            for weight in self._weights(chain, call)
            if (constant := chain.constant(weight)) is not None
        )
        each_token = chain.add_like(x, (*chain.dims(x)[:-1], rows))
        low_rank = chain.call(
            "inpage.low_rank.default",
            call.source,
            x=x,
            down=self._constant(chain, f"adapters.down {owners}", down),
            strengths=self._strengths(chain, parts, ranks),
            up=self._constant(chain, f"adapters.up {owners}", Ups(parts, (rows, ranks))),
            biases=biases,
            out=each_token,
        )
        added = each_token if bias == "bias" else chain.add([each_token])
        changed = chain.call(call.name, call.source, **chain.given(call) | {bias: added})
        chain.replace([made], at, [low_rank, changed])

    def _constant(self, chain: Chain, name: str, data: Downs | Ups) -> int:
        self.arrays[name] = data
        return chain.add_constant(name, data.shape)

    def _strengths(self, chain: Chain, parts: list[Part], ranks: int) -> int:
        """Return the strengths of such ranks: calls that are alike share one tensor."""
        owners = [update.adapter for _, update in parts for _ in range(update.rank)]
        layout = (*owners, *[-1] * (ranks - len(owners)))
        known = {held: name for name, held in self.strengths.items()}
        name = known.get(layout, f"adapters.strengths.{len(known)}")
        self.strengths[name] = layout
        return chain.add_constant(name, (ranks,))


def owner_of(constant: str) -> str:
    """Return the linear that a weight belongs to: layers.0.mlp.up_proj."""
    return constant.rpartition(".")[0]


def linears_of(program: Program) -> dict[str, Dims]:
    """Return [rows, columns] of every linear that the pass can add to, by its name."""
    chain = Chain(program)
    found: dict[str, Dims] = {}
    for _, call in chain.calls_of(*LINEARS):
        weight = chain.constant(chain.arg(call, "weight"))
        if weight is not None and weight.constant is not None:
            dims = (
                *chain.dims(chain.arg(call, "out"))[-1:],
                *chain.dims(chain.arg(call, "x"))[-1:],
            )
            found[owner_of(weight.constant)] = dims
    return found
