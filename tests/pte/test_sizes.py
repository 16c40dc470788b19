"""Files with too much of anything are refused by name, before a page stands still over them."""

import pytest

from py_runtime.pte import PteError, UnsupportedPteError, flatbuffer, inspect_pte, open_pte
from py_runtime.pte.about import pte_cannot_be_loaded
from tests.pte.memory_source import MemorySource
from tests.pte.written import call_kernel, integer, method, pte, tensor, union
from tests.runners import wait


def test_many_unknown_ops_are_counted_not_listed() -> None:
    operators = [f"aten::made_up_{at}" for at in range(2_000)]
    calls = [call_kernel(at, 0) for at in range(len(operators))]
    file = pte([method("forward", [tensor("f32", 1)], [0], [0], calls, operators=operators)])
    with pytest.raises(UnsupportedPteError) as caught:
        wait(open_pte(MemorySource(file)))
    assert len(str(caught.value)) < 4000
    assert "and 1950 more" in str(caught.value)
    names = caught.value.facts()["names"]
    assert isinstance(names, list)
    assert len(names) == 51
    assert pte_cannot_be_loaded(caught.value).count("\n") < 60
    assert len(wait(inspect_pte(MemorySource(file)))["unsupported"]) == 51


def test_an_unknown_op_with_a_long_name_is_cut() -> None:
    calls, operators = [call_kernel(0, 0)], ["aten::" + "x" * 100_000]
    file = pte([method("forward", [tensor("f32", 1)], [0], [0], calls, operators=operators)])
    with pytest.raises(UnsupportedPteError) as caught:
        wait(open_pte(MemorySource(file)))
    assert len(str(caught.value)) < 500


def test_a_file_has_only_so_many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flatbuffer, "MAX_ITEMS", 4_000)  # such a file is written slowly
    nulls = [union(1, {})] * 2_000
    file = pte([method("forward", [tensor("f32", 1), *nulls], [0], [0])])
    with pytest.raises(PteError, match=r"model.pte has more than 4,000 parts"):
        wait(open_pte(MemorySource(file)))


def test_a_file_has_only_so_many_methods() -> None:
    def file(count: int) -> MemorySource:
        return MemorySource(pte([method(f"m{at}", [integer(at)], [], [0]) for at in range(count)]))

    assert len(wait(open_pte(file(64))).constants) == 64
    with pytest.raises(PteError, match="has 2000 methods; at most 64 are read"):
        wait(open_pte(file(2000)))
