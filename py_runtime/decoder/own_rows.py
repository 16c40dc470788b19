"""Embeddings that tokens have for each layer stay off the GPU: of a large table a token needs one
row, which the host reads where the model lies and gives along with the token."""

from dataclasses import replace

from py_runtime.decoder.config import PER_LAYER_TABLE
from py_runtime.program import NullValue, Program, ProgramInput, TensorValue, as_constant

TABLE = f"{PER_LAYER_TABLE}.weight"


def with_rows_given(program: Program) -> Program:
    """Without the table: its rows, f32 [1, S, columns], are one more input."""
    for call in program.ops:
        table = as_constant(program.values[call.args[0]])
        if table is None or table.constant != TABLE:
            continue
        rows = program.values[call.args[-1]]
        assert isinstance(rows, TensorValue), "an embedding gives a tensor"
        given = ProgramInput(call.args[-1], frozenset({1}))
        kept = tuple(other for other in program.ops if other is not call)
        values = [
            NullValue() if place in call.args and as_constant(value) else value
            for place, value in enumerate(program.values)
        ]
        values[call.args[-1]] = replace(rows, name="rows")
        return replace(program, values=tuple(values), ops=kept, inputs=(*program.inputs, given))
    return program
