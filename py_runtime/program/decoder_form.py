"""The form of a decoder's program that a session runs.

Tokens [1, S] and a position [1] go in, the last token's logits [1, V] come out. Rows [1, S,
columns] that belong to the tokens may go in, too.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from py_runtime.base.dtypes import I32, I64
from py_runtime.base.model_errors import ModelError
from py_runtime.program import (
    INT32_MAX,
    BoolValue,
    IntValue,
    OpCall,
    Program,
    TensorValue,
    Value,
    op_names,
)

VIEW = "aten.view_copy.default"
# Each row of their output comes from the same row of their first argument alone.
ROW_BY_ROW = ("aten.linear.", "et_vk.linear_", "et_vk.rms_norm.")
# Ops with tables that have a row for each position: which argument, and which of its dims. Where an
# op has two such, it checks that they are alike.
TILED = 9  # the argument of gated_delta
CACHE_ROWS, TABLE_ROWS = slice(-3, -2), slice(0, 1)
ROWS_OF_POSITIONS = {
    op_names.SDPA: (3, CACHE_ROWS),
    op_names.WINDOWED: (3, CACHE_ROWS),
    op_names.OF_IMAGES: (3, CACHE_ROWS),
    "update_cache.default": (1, CACHE_ROWS),
    op_names.ATTEND_KV_CACHE: (1, CACHE_ROWS),
    op_names.ATTEND_WINDOW: (1, CACHE_ROWS),
    op_names.ATTEND_IMAGES: (1, CACHE_ROWS),
    "et_vk.apply_rotary_emb_hf.default": (2, TABLE_ROWS),
}


def decoder_sizes(program: Program) -> tuple[int, int]:
    """Return (most tokens in a call, vocabulary); raise for anything but a decoder."""
    shapes = [_dims(program, entry.value) for entry in program.inputs]
    rows = shapes[2:]
    shapes = shapes[:2] + [_dims(program, value_id) for value_id in program.outputs]
    if [len(dims) for dims in shapes] != [2, 1, 2] or not all(map(_is_rows, rows)):
        shapes += rows
        raise ModelError(
            f"{program.name} is not a decoder: it should take tokens [1, S] and a position [1] and "
            f"give logits [1, V], but has tensors of the shapes {[list(dims) for dims in shapes]}",
            "run it from Python instead",
        )
    tokens, _, logits = shapes
    if tokens[1] > 1 and 1 not in program.inputs[0].dynamic_dims:
        raise ModelError(
            f"{program.name} takes exactly {tokens[1]} tokens at a time, so it cannot write "
            "one after the other",
            "export it with dynamic shapes",
        )
    return tokens[1], logits[1]


def check_context(name: str, context: int, program: Program) -> None:
    """Check that every position of the context has its row in the caches and rotary tables."""
    rows = min(_rows_of_positions(program), default=INT32_MAX)
    if not 1 <= context <= rows:
        raise ModelError(
            f"{name} has a context of {context} positions by its description, but its graph has "
            f"room for 1 to {rows}"
        )


def head_dim_of(program: Program) -> int:
    """Return the width of attention's heads, as the first cache has it; 0 without attention."""
    for call in program.ops:
        if call.name in op_names.FILLING:
            return _dims(program, call.args[ROWS_OF_POSITIONS[call.name][0]])[-1]
    return 0


def is_tiled(program: Program) -> bool:
    """Return whether value heads of delta nets lie tiled, as in GGUF files."""
    for call in program.ops:
        if call.name == "inpage.gated_delta.default":
            tiled = program.values[call.args[TILED]]
            return isinstance(tiled, BoolValue) and tiled.value
    return False


def _rows_of_positions(program: Program) -> Iterator[int]:
    for call in program.ops:
        if call.name in ROWS_OF_POSITIONS:
            argument, rows = ROWS_OF_POSITIONS[call.name]
            value = program.values[call.args[argument]]
            # Tables that are computed have a row for each token of a call.
            if isinstance(value, TensorValue) and (value.state or value.constant):
                yield from value.dims[rows]


def as_decoder(program: Program) -> Program:
    """Return the program in that form if it is a decoder in another one, else as it is."""
    by_rank = {len(_dims(program, entry.value)): entry for entry in program.inputs}
    if len(program.inputs) != 2 or by_rank.keys() != {1, 2} or len(program.outputs) != 1:
        return program
    if any(_dtype(program, entry.value) not in (I32, I64) for entry in program.inputs):
        return program
    program = replace(program, inputs=(by_rank[2], by_rank[1]))
    is_whole = _is_rows(_dims(program, program.outputs[0]))
    return _last_row_only(program) if is_whole else program


def _last_row_only(program: Program) -> Program:
    """Turn logits [1, S, V] into [1, V]; the ops before them compute one row where they can."""
    makers = {value_id: call for call in program.ops for value_id in program.writes(call)}
    uses = Counter(value_id for call in program.ops for value_id in program.reads(call))
    chain: list[OpCall] = []
    before: list[OpCall] = []  # what may join the chain, if the rows before it can be told apart
    source = program.outputs[0]
    while True:
        call = makers.get(_origin(source, before))
        if call is None or uses[call.args[-1]] > 1 or not _is_row_by_row(program, call):
            break
        before.append(call)
        if _is_rows(_dims(program, call.args[0])):
            chain += before
            before = []
            source = call.args[0]
    return _Rewriter(program).select_last(source, chain[::-1])


def _origin(source: int, before: list[OpCall]) -> int:
    return before[-1].args[0] if before else source


def _is_row_by_row(program: Program, call: OpCall) -> bool:
    if call.name == VIEW:
        return _dims(program, call.args[0])[-1:] == _dims(program, call.args[-1])[-1:]
    return call.name.startswith(ROW_BY_ROW)


class _Rewriter:
    """Appends values and ops to a program in place of ops that it removes."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._values: list[Value] = list(program.values)

    def select_last(self, source: int, chain: list[OpCall]) -> Program:
        """Repeat `chain` after `source`, for its last row only."""
        dim, index = self._add(IntValue(1)), self._add(IntValue(-1))
        row = self._row_of(source)
        ops = [OpCall(op_names.SELECT, (source, dim, index, row))]
        for call in chain:
            if call.name != VIEW:
                out = self._row_of(call.args[-1])
                ops.append(replace(call, args=(row, *call.args[1:-1], out)))
                row = out
        gone = {id(call) for call in chain}
        kept = [call for call in self._program.ops if id(call) not in gone]
        return replace(self._program, values=tuple(self._values), ops=(*kept, *ops), outputs=(row,))

    def _row_of(self, value_id: int) -> int:
        value = self._program.values[value_id]
        assert isinstance(value, TensorValue)
        return self._add(TensorValue(value.dtype, (1, value.dims[-1]), value.name))

    def _add(self, value: Value) -> int:
        self._values.append(value)
        return len(self._values) - 1


def _is_rows(dims: tuple[int, ...]) -> bool:
    return len(dims) == 3 and dims[0] == 1


def _dims(program: Program, value_id: int) -> tuple[int, ...]:
    value = program.values[value_id]
    return value.dims if isinstance(value, TensorValue) else ()


def _dtype(program: Program, value_id: int) -> object:
    return getattr(program.values[value_id], "dtype", None)
