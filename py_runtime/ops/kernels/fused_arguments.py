"""The arguments that fused linears have in common: weights of one kind, biases, a norm of x."""

from py_runtime.base.dtypes import F32
from py_runtime.live.launch import Bindable
from py_runtime.ops.kernels.linears import Norm
from py_runtime.ops.kernels.matrices import Matrix, Weight, matrix_of
from py_runtime.ops.registry import Op

WEIGHTS = "kind weights scales group_size biases"  # scales and biases null where there are none
NORM = "norm eps"  # null where x is taken as it is


def take_matrix(op: Op, columns: int) -> Matrix:
    """All weights as one matrix, one after the other."""
    weights = op.tensors("weights")
    op.require(bool(weights), "no weights")
    scales = op.tensors("scales") if op.has("scales") else [None] * len(weights)
    op.require(len(scales) == len(weights), f"{len(scales)} scales for {len(weights)} weights")
    kind, group_size = op.string("kind"), op.integer("group_size")
    pairs = zip(weights, scales, strict=True)
    return matrix_of(op, [Weight(kind, weight, own, group_size) for weight, own in pairs], columns)


def take_biases(op: Op, matrix: Matrix) -> Bindable | None:
    """One for each row of the matrix; only the last may be longer than its weight has rows."""
    if not op.has("biases"):
        return None
    biases = op.tensors("biases", F32)
    rows = list(matrix.part_rows)
    for bias in biases:
        op.require(bias.rank == 1, f"a bias of {list(bias.max_dims)}; it must have one dim")
    lengths = [bias.max_dims[0] for bias in biases]
    op.require(
        len(lengths) == len(rows) and lengths[:-1] == rows[:-1] and lengths[-1] >= rows[-1],
        f"biases of {lengths} do not fit weights of {rows} rows",
    )
    return op.join(biases)


def take_norm(op: Op, columns: int) -> Norm | None:
    """None where the op does not normalise its x first."""
    if not op.has("norm"):
        return None
    weight = op.tensor("norm", F32, rank=1)
    op.require(
        weight.max_dims == (columns,),
        f"a norm of {list(weight.max_dims)} does not fit {columns} columns",
    )
    return Norm(weight, op.number("eps"))
