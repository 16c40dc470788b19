"""Arguments that fused linears have in common: weights, biases, a norm of x."""

from dataclasses import dataclass

from py_runtime.base.dtypes import F32
from py_runtime.live.launch import Bindable
from py_runtime.live.values import LiveTensor
from py_runtime.ops.kernels.matrices import Matrices, Weight, matrices_of, part_rows
from py_runtime.ops.kernels.token_inputs import Norm, Summed
from py_runtime.ops.registry import Op
from py_runtime.program.weight_kinds import has_scales

# `kind` names the kind of all weights, or that of each. Only kinds that have scales give any; these
# and biases are null where there are none.
WEIGHTS = "kind weights scales? group_size biases?"
NORM = "norm? eps?"  # null where x is taken as it is
# These stand in place of an x that the op computes as a sum; x is then the second output.
SUM = "of sum_norm sum_eps residual factor?"


@dataclass(frozen=True)
class InputOutput:
    """x and the output of an op, and where x comes from if the op computes it."""

    x: LiveTensor
    out: LiveTensor
    summed: Summed | None

    @property
    def read(self) -> LiveTensor:
        """The tensor that is bound, unread, in place of one that there is not."""
        return self.x if self.summed is None else self.summed.of

    def resize(self, op: Op) -> None:
        """Resize x where the op computes it."""
        if self.summed is not None:
            of, residual = self.summed.of, self.summed.residual
            op.require_live(
                of.dims == residual.dims,
                f"{list(of.dims)} cannot be added to {list(residual.dims)} here",
            )
            self.x.resize(of.dims)


def take_input_output(op: Op) -> InputOutput:
    """Take x and the output by the arguments of the name the op was called by."""
    if not op.takes("of"):
        return InputOutput(op.tensor("x", F32), op.tensor("out", F32), None)
    outs, of = op.tensors("out", F32), op.tensor("of", F32)
    op.require(len(outs) == 2, f"{len(outs)} outputs; they must be two")
    residual, weight = op.tensor("residual", F32), op.tensor("sum_norm", F32, rank=1)
    factor = op.tensor("factor", F32) if op.has("factor") else None
    dims = of.max_dims
    op.require(
        dims == residual.max_dims == outs[1].max_dims and dims[-1:] == weight.max_dims,
        f"{list(dims)}, a norm of {list(weight.max_dims)}, {list(residual.max_dims)} and their sum "
        f"{list(outs[1].max_dims)} do not fit",
    )
    op.require(
        factor is None or factor.max_dims == (1,),
        f"a factor of {list(factor.max_dims) if factor is not None else []}, not [1]",
    )
    summed = Summed(of, Norm(weight, op.number("sum_eps")), residual, factor)
    return InputOutput(outs[1], outs[0], summed)


def take_matrices(op: Op, columns: int) -> Matrices:
    """Take all weights in order; neighbours of one kind are joined into one matrix."""
    weights = op.tensors("weights")
    op.require(bool(weights), "no weights")
    kinds, group_size = op.string("kind").split(), op.integer("group_size")
    kinds = kinds * len(weights) if len(kinds) == 1 else kinds
    op.require(len(kinds) == len(weights), f"{len(kinds)} kinds for {len(weights)} weights")
    scales = op.tensors("scales") if op.has("scales") else []
    scaled = [kind for kind in kinds if has_scales(kind)]
    op.require(
        bool(scales) or not scaled, f"weights of the kind {' '.join(scaled[:1])} without scales"
    )
    op.require(
        len(scales) == len(scaled), f"{len(scales)} scales for {len(scaled)} weights that have some"
    )
    ahead = iter(scales)
    found = [
        Weight(kind, weight, next(ahead) if has_scales(kind) else None, group_size)
        for kind, weight in zip(kinds, weights, strict=True)
    ]
    return matrices_of(op, found, columns)


def take_biases(op: Op, matrices: Matrices) -> Bindable | None:
    """Take a bias for each row; only the last may be longer than its weight has rows.

    Or take a single tensor that has biases for each token: [..., tokens, rows of all weights].
    """
    if not op.has("biases"):
        return None
    biases = op.tensors("biases", F32)
    rows = list(part_rows(matrices))
    if len(biases) == 1 and biases[0].rank > 1:
        op.require(
            biases[0].max_dims[-1] == sum(rows),
            f"biases of {list(biases[0].max_dims)} do not fit weights of {rows} rows",
        )
        return biases[0]
    for bias in biases:
        op.require(bias.rank == 1, f"a bias of {list(bias.max_dims)}; it must have one dim")
    lengths = [bias.max_dims[0] for bias in biases]
    op.require(
        len(lengths) == len(rows) and lengths[:-1] == rows[:-1] and lengths[-1] >= rows[-1],
        f"biases of {lengths} do not fit weights of {rows} rows",
    )
    return op.join(biases)


def take_norm(op: Op, columns: int) -> Norm | None:
    """Take the norm of x; None where the op has none."""
    if not op.has("norm"):
        return None
    weight = op.tensor("norm", F32, rank=1)
    op.require(
        weight.max_dims == (columns,),
        f"a norm of {list(weight.max_dims)} does not fit {columns} columns",
    )
    return Norm(weight, op.number("eps"))
