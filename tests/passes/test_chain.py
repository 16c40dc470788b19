"""Calls that passes make: arguments by their names, in the order that the registry has."""

import pytest

from py_runtime.base.dtypes import F32
from py_runtime.base.errors import GraphError
from py_runtime.ops.registry import REGISTRY
from py_runtime.passes.chain import Chain
from py_runtime.program import NullValue
from py_runtime.program.writer import ProgramWriter

NAME = "inpage.norm_residual.default"
GIVEN = ("x", "weight", "eps", "residual", "out")


@pytest.fixture
def chain() -> Chain:
    writer = ProgramWriter()
    for name in GIVEN:
        writer.input(name, (2, 4), F32)
    return Chain(writer.program())


@pytest.fixture
def ids() -> dict[str, int]:
    return {name: number for number, name in enumerate(GIVEN)}


def test_arguments_come_in_the_registry_s_order(chain: Chain, ids: dict[str, int]) -> None:
    call = chain.call(NAME, "here", **dict(reversed(ids.items())))
    assert (call.name, call.source) == (NAME, "here")
    *first, factor, out = call.args
    assert (first, out) == ([0, 1, 2, 3], 4)
    assert isinstance(chain.values[factor], NullValue)
    assert chain.given(call) == ids | {"factor": factor}


def test_null_is_added_only_where_something_is_left_out(chain: Chain, ids: dict[str, int]) -> None:
    before = len(chain.values)
    assert chain.call(NAME, "", **ids, factor=1).args == (0, 1, 2, 3, 1, 4)
    assert len(chain.values) == before


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"norm": 1}, "has no argument 'norm'"),
        ({"residual": None}, "needs 'residual'"),
        ({"out": None}, "needs 'out'"),
        ({"scale": 1, "x": None}, "has no argument 'scale' and needs 'x'"),
    ],
)
def test_what_an_op_does_not_take_is_refused(
    chain: Chain, ids: dict[str, int], changes: dict[str, int | None], fault: str
) -> None:
    taken = ", ".join(REGISTRY[NAME].args)
    with pytest.raises(GraphError) as raised:
        chain.call(NAME, "", **ids | changes)
    assert str(raised.value) == f"op '{NAME}' {fault}; it takes {taken}"
