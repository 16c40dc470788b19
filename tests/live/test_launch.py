"""Launches: grids that a device runs, and parameters that a kernel has."""

import struct

import numpy as np
import pytest

from py_runtime.base.dtypes import F32
from py_runtime.base.errors import GraphError
from py_runtime.live.launch import BufferCopy, Joined, Launch, fold
from py_runtime.live.uniforms import ParamsLayout, UniformArena
from py_runtime.live.values import Journal, LiveTensor
from tests.live.small_kernel import kernel_with


def test_fold_covers_every_workgroup() -> None:
    assert fold(1, 65535) == (1, 1)
    assert fold(65535, 65535) == (65535, 1)
    for groups in (65536, 131071, 10**6, 65535**2):
        x, y = fold(groups, 65535)
        assert max(x, y) <= 65535
        assert 0 <= x * y - groups < y
    with pytest.raises(GraphError, match="more than a device runs"):
        fold(65535**2 + 1, 65535)


class Launched:
    """A launch of its own, with the grid and the parameters that a run would send."""

    def __init__(self) -> None:
        self.arena, self.journal = UniformArena(16), Journal(1)
        layout = ParamsLayout(kernel_with("struct Params { count: u32 }"))
        self.launch = Launch("op 0", layout, self.arena, group_limit=8, workgroup=64)
        self.launch.journal = self.journal
        self.arena.seal()

    @property
    def sent(self) -> tuple[list[int], int]:
        (count,) = struct.unpack("<I12x", self.arena.mirror.tobytes())
        return np.asarray(self.launch.row).tolist(), count


def test_a_launch_has_an_invocation_for_each_thing_unless_it_is_skipped() -> None:
    launched = Launched()
    launched.launch.for_each(64 * 8 + 1, count=513)
    assert launched.sent == ([5, 2, 1], 513), "nine workgroups are more than a row of eight"
    launched.launch.skip()
    assert launched.sent == ([0, 0, 0], 513)
    launched.journal.commit()
    launched.launch(2, count=7)
    launched.journal.rollback()
    assert launched.sent == ([0, 0, 0], 513)


def test_other_parameters_than_the_kernel_has_are_refused() -> None:
    with pytest.raises(GraphError, match=r"op 0: parameters \['rows'\] given, .* \['count'\]"):
        Launched().launch(1, rows=3)


@pytest.mark.parametrize(
    ("things", "groups"), [(0, 0), (1, 1), (63, 1), (64, 1), (65, 2), (128, 2), (129, 3)]
)
def test_a_workgroup_is_added_for_the_first_thing_beyond_the_last(things: int, groups: int) -> None:
    launched = Launched()
    launched.launch.for_each(things, count=things)
    assert launched.sent == ([groups, 1, 1] if groups else [0, 0, 0], things)


def test_what_stays_as_it_is_is_neither_recorded_nor_sent() -> None:
    launched = Launched()
    launched.launch(2, count=7)
    launched.journal.commit()
    launched.arena.uploaded()
    launched.launch(2, count=7)
    assert launched.arena.dirty() is None
    launched.launch(3, count=7)
    assert launched.arena.dirty() is None, "the grid is no parameter"
    launched.journal.rollback()
    assert launched.sent == ([2, 1, 1], 7)


def test_a_snapshot_has_set_what_a_launch_sends_already() -> None:
    launched = Launched()
    launched.launch(2, count=7)
    before = launched.launch.value
    launched.launch(3, count=8)
    launched.launch.set_from_snapshot(before)
    assert launched.launch.value == before
    assert launched.sent == ([3, 1, 1], 8)


def test_a_copy_moves_whole_words_and_can_be_taken_back() -> None:
    source, destination = (LiveTensor(at, "x", F32, (4, 8)) for at in (0, 1))
    copy, journal = BufferCopy("op 0", source, destination), Journal(1)
    copy.journal = journal
    for nbytes, copied in ((1, 4), (4, 4), (5, 8), (128, 128)):
        copy(nbytes)
        assert copy.value == copied
        assert np.asarray(copy.row).tolist() == [0, 0, copied]
    journal.commit()
    copy(125)  # as many words
    assert journal.holders == {copy: 0}
    copy(12)
    copy.set_from_snapshot(64)
    assert copy.value == 12, "the plan's table is put back as a whole"
    journal.rollback()
    assert copy.value == 128


def test_joined_constants_lie_one_behind_the_other() -> None:
    parts = [LiveTensor(at, "w", F32, dims) for at, dims in enumerate([(4, 8), (1,), (2, 3)])]
    joined = Joined("w", tuple(parts))
    assert joined.nbytes == 128 + 4 + 24
    assert [(part.id, offset) for part, offset in joined.offsets()] == [(0, 0), (1, 128), (2, 132)]
