"""Kernels of one op that write nothing in common: a GPU need not wait between them."""

import pytest

from py_runtime.live.launch import Bindable, Scratch
from py_runtime.ops.kernels.linears import Finish
from py_runtime.ops.kernels.matrices import Matrix

Q, K, V = "q_out", "k_cache", "v_cache"


def matrix(first_row: int, rows: int) -> Matrix:
    return Matrix("q4_k", (rows,), 256, (), {}, False, True, {}, first_row)


@pytest.mark.parametrize(
    ("first_row", "rows", "written"),
    [
        (0, 96, {Q, K}),  # v is of another kind
        (96, 32, {V}),
        (0, 64, {Q}),
        (64, 64, {K, V}),
        (0, 65, {Q, K}),  # cut where k has begun
        (0, 128, {Q, K, V}),
    ],
)
def test_a_matrix_binds_what_its_rows_write(first_row: int, rows: int, written: set[str]) -> None:
    own: dict[str, Bindable] = {name: Scratch(name, 16, 0) for name in (Q, K, V)}
    others = {name: Scratch(f"in place of {name}", 16, 0) for name in (Q, K, V)}
    ends = zip((Q, K, V), (range(64), range(64, 96), range(96, 128)), strict=True)
    finish = Finish(
        plugs={},
        bind=own,
        pairs=64,
        fields={"first_head": 0},
        start="first_head",
        start_rows=8,
        stand_ins={name: (wrote, others[name]) for name, wrote in ends},
    )
    part = finish.of(matrix(first_row, rows))
    assert {name for name in own if part.bind[name] is own[name]} == written
    assert all(part.bind[name] is others[name] for name in own if name not in written)
    assert part.fields == {"first_head": first_row // 8}
