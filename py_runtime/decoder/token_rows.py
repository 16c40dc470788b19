"""Token rows: embeddings for each layer, which stay off the GPU.

A token needs one row of a large table. The host reads it where the model lies, and gives it along
with the token.
"""

from dataclasses import dataclass, replace

from py_runtime.decoder.tensors import PER_LAYER_TABLE
from py_runtime.program import NullValue, OpCall, Program, ProgramInput, TensorValue, as_constant
from py_runtime.program.weight_kinds import BLOCK_KINDS, FLOAT

TABLE = f"{PER_LAYER_TABLE}.weight"
KINDS = {kind.embedding: kind.name for kind in BLOCK_KINDS.values()}


@dataclass(frozen=True)
class TokenRowsTable:
    """The table that a program looks rows up in."""

    call: OpCall
    kind: str  # f32, or one of BLOCK_KINDS
    parts: tuple[str, ...]  # its constants: the weight, and scales where it has some
    columns: int


def table_of(program: Program) -> TokenRowsTable | None:
    """Return the table of a program; None where tokens have nothing for each layer."""
    for call in program.ops:
        first = as_constant(program.values[call.args[0]]) if call.args else None
        if first is None or first.constant != TABLE:
            continue
        rows = program.values[call.args[-1]]
        assert isinstance(rows, TensorValue), "an embedding gives a tensor"
        found = [as_constant(program.values[arg]) for arg in call.args]
        parts = tuple(str(part.constant) for part in found if part is not None)
        return TokenRowsTable(call, KINDS.get(call.name, FLOAT), parts, rows.dims[-1])
    return None


def with_token_rows_given(program: Program) -> Program:
    """Return the program with token rows as one more input, in place of its table.

    The rows are f32 [1, S, columns]. A program without a table stays as it is.
    """
    table = table_of(program)
    if table is None:
        return program
    *given, rows = table.call.args
    values = [
        NullValue() if value_id in given and as_constant(value) else value
        for value_id, value in enumerate(program.values)
    ]
    named = values[rows]
    assert isinstance(named, TensorValue), "an embedding gives a tensor"
    values[rows] = replace(named, name="rows")
    return replace(
        program,
        values=tuple(values),
        ops=tuple(call for call in program.ops if call is not table.call),
        inputs=(*program.inputs, ProgramInput(rows, frozenset({1}))),
    )
