"""Dims and SymInts: bounded, told to the ops that read them, and taken back as a whole."""

import numpy as np
import pytest

from py_runtime.base.dtypes import BOOL, F32, I32, I64
from py_runtime.base.errors import GraphError, InputError
from py_runtime.live.uniforms import UniformArena
from py_runtime.live.values import Journal, LiveInt, LiveTensor


def test_element_width_comes_from_the_dtype() -> None:
    for dtype, nbytes in ((F32, 24), (I64, 24), (I32, 24), (BOOL, 24)):
        tensor = LiveTensor(0, "t", dtype, (2, 3))
        assert (tensor.max_bytes, tensor.live_bytes) == (nbytes, nbytes), dtype.name
    assert (I64.host.itemsize, I64.gpu_bytes, BOOL.host.itemsize) == (8, 4, 1)


def test_changes_reach_their_readers_in_order_and_can_be_taken_back() -> None:
    journal, arena = Journal(op_count=3), UniformArena(16)
    tensor, length = LiveTensor(0, "x", F32, (4, 8)), LiveInt(1, "length", 5, is_symint=True)
    tensor.read_by, length.read_by = [2, 0], [1, 0]
    length.slot(arena)
    arena.seal()
    length.upload()
    tensor.journal = length.journal = journal

    tensor.resize((2, 8))
    length.set(6)
    assert arena.mirror.view(np.int32).tolist() == [6, 0, 0, 0]
    assert [journal.next_op() for _ in range(4)] == [0, 1, 2, None], "each op once"
    tensor.resize((1, 8))
    journal.rollback()
    assert (tensor.dims, length.value) == ((4, 8), 5)
    assert arena.mirror.view(np.int32).tolist() == [5, 0, 0, 0]
    assert journal.next_op() is None, "what was taken back concerns nobody"


def test_what_is_out_of_bounds_is_refused() -> None:
    tensor = LiveTensor(0, "x", F32, (4, 8))
    for dims, fault in (((4,), "has rank 2"), ((0, 8), "empty"), ((5, 8), "above its maximum 4")):
        with pytest.raises(InputError, match=fault):
            tensor.resize(dims)
    assert tensor.dims == (4, 8)
    with pytest.raises(InputError, match="length: 2147483648 is not an int32"):
        LiveInt(1, "length", 5, is_symint=True).set(2**31)
    with pytest.raises(GraphError, match="one is not a SymInt and cannot be set"):
        LiveInt(2, "one", 1, is_symint=False).set(2)


def test_the_bounds_themselves_are_taken() -> None:
    journal, tensor = Journal(1), LiveTensor(0, "x", F32, (4, 8))
    length = LiveInt(1, "length", 5, is_symint=True)
    tensor.journal = length.journal = journal
    assert tensor.rank == 2
    for dims in ((1, 1), (4, 8)):
        tensor.resize(dims)
        assert tensor.dims == dims
    for value in (-(2**31), 2**31 - 1):
        length.set(value)
        assert length.value == value
    with pytest.raises(InputError, match="length: -2147483649 is not an int32"):
        length.set(-(2**31) - 1)
    with pytest.raises(InputError, match=r"dim 1 is 9, above its maximum 8 \(dims \[4, 9\]"):
        tensor.resize((4, 9))


def test_bytes_follow_the_live_dims() -> None:
    tensor = LiveTensor(0, "x", F32, (4, 8))
    tensor.journal = Journal(1)
    tensor.resize((3, 2))
    assert (tensor.max_bytes, tensor.live_bytes) == (128, 24)


def test_what_stays_as_it_is_concerns_nobody() -> None:
    """Check that it needs no journal either: a graph that is being built has none."""
    tensor, length = LiveTensor(0, "x", F32, (4, 8)), LiveInt(1, "length", 5, is_symint=True)
    tensor.resize((4, 8))
    tensor.change_to((4, 8))
    length.set(5)
    assert (tensor.dims, length.value) == ((4, 8), 5)


def test_a_journal_knows_what_anything_was_at_first() -> None:
    journal, tensor = Journal(1), LiveTensor(0, "x", F32, (4, 8))
    tensor.journal = journal
    for dims in ((3, 8), (2, 8)):
        tensor.resize(dims)
        journal.commit()
    assert journal.holders == {tensor: (4, 8)}
    journal.rollback()
    assert tensor.dims == (2, 8), "what was committed stays"


def test_an_int_has_one_slot_and_one_that_is_fixed_has_one_too() -> None:
    arena = UniformArena(16)
    length, one = LiveInt(0, "length", 5, is_symint=True), LiveInt(1, "one", -1, is_symint=False)
    length.upload()  # it has no slot yet
    assert [length.slot(arena), one.slot(arena), length.slot(arena)] == [0, 16, 0]
    arena.seal()
    one.upload()
    assert arena.mirror.view(np.int32).tolist() == [0, 0, 0, 0, -1, 0, 0, 0]
    length.set_from_snapshot(9)
    assert length.value == 9
    assert not arena.mirror[:16].any(), "a snapshot puts the arena back as a whole"
