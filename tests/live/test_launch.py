"""Launches: grids that a device runs, and parameters that a kernel has."""

import struct

import numpy as np
import pytest

from py_runtime.base.errors import GraphError
from py_runtime.live.launch import Launch, fold
from py_runtime.live.uniforms import ParamsLayout, UniformArena
from py_runtime.live.values import Journal
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
