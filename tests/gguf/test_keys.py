"""Keys that are asked for by their names: within bounds, or refused."""

from typing import Any

import pytest

from py_runtime.gguf.errors import GgufError
from tests.gguf.small_keys import keys_of


def test_keys_are_asked_for_within_bounds() -> None:
    keys = keys_of("llama", {"n": 5, "ns": [4, 5, 6], "f": 0.5, "t": "x", "b": False})
    assert "n" in keys
    assert "m" not in keys
    assert [keys.integer("n", 5, 5), keys.integer("m", 1, 2, default=7)] == [5, 7]
    assert [keys.number("f", 0.5, 0.5), keys.number("g", 1, 2, default=7.0)] == [0.5, 7.0]
    assert [keys.flag("b", True), keys.flag("c", True), keys.flag("c", False)] == [
        *(False, True, False),
    ]
    assert [keys.text("t", "y"), keys.text("u", "y")] == ["x", "y"]
    assert keys.integers("ns", 2, 4, 6) == [4, 5]
    assert keys.integers("n", 2, 1, 9) == [5, 5]
    assert keys.integers("m", 2, 1, 9, default=3) == [3, 3]
    for ask in (
        lambda: keys.integer("ns", 1, 9),
        lambda: keys.integer("m", 1, 9),
        lambda: keys.number("g", 1, 9),
        lambda: keys.integers("ns", 4, 1, 9),
        lambda: keys.integers("ns", 3, 5, 9),
        lambda: keys.integers("ns", 3, 1, 5),
    ):
        with pytest.raises(GgufError):
            ask()


@pytest.mark.parametrize(
    ("item", "is_refused"),
    [(0, False), (False, False), (0.0, False), (1, True), (True, True), (0.5, True), ([0], True)],
)
def test_zero_says_that_a_file_does_without(item: Any, is_refused: bool) -> None:
    keys = keys_of("llama", {"a": item})
    keys.refuse({"b": "something else"})
    if is_refused:
        with pytest.raises(GgufError, match="asks for such things"):
            keys.refuse({"a": "such things"})
    else:
        keys.refuse({"a": "such things"})
