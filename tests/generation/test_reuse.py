"""State that is kept from one answer to the next: the loop of a graph, and its stretches."""

import asyncio
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from py_runtime.base.errors import ContextLengthError
from py_runtime.generation import session as sessions
from py_runtime.generation.decode_loop import NO_CHANGES, Stretch
from py_runtime.model.model import Model
from tests.generation.test_session import FakeModel
from tests.runners import wait


class FakeLoop:
    """A loop that knows its graph, and whether it was unloaded."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.is_unloaded = False

    @classmethod
    async def create(cls, graph: Any) -> "FakeLoop":
        return cls(graph)

    def unload(self) -> None:
        self.is_unloaded = True


def loop_of(model: FakeModel) -> Any:
    return wait(model.session.decode_loop())


def test_a_loop_is_made_once_for_each_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "DecodeLoop", FakeLoop)
    model = FakeModel()
    first = loop_of(model)
    assert loop_of(model) is first
    assert first.graph is model.graph
    model.graph = object()  # as after a lost device
    second = loop_of(model)
    assert second is not first
    assert second.graph is model.graph
    assert loop_of(model) is second
    model.session.drop_loop()
    assert (first.is_unloaded, second.is_unloaded) == (False, True)
    third = loop_of(model)
    assert third is not second
    model.session.drop_loop()
    model.session.drop_loop()  # nothing is left to free


# Stretches ----------------------------------------------------------------------------------------

WORDS = np.array([10, 20, 30, 40, 50, 60], np.uint32)
CHANGES = np.array([[1, 3], [4, 0xFFFFFFFF]], np.uint32)  # the last goes down by one
COUNTS = np.array([[2, 1, 1]], np.uint32)
STRETCH = Stretch(7, 12, WORDS, CHANGES, COUNTS)


def arena_at(position: int) -> np.ndarray:
    words = WORDS.copy()
    words[1] += 3 * (position - 7)
    words[4] -= position - 7
    return words


def test_the_bytes_that_change() -> None:
    assert STRETCH.moving == (4, 20)
    assert STRETCH.places.tolist() == [1, 4]
    first = Stretch(0, 1, WORDS, np.array([[0, 1]], np.uint32), COUNTS)
    assert first.moving == (0, 4)
    nothing = Stretch(0, 1, WORDS, NO_CHANGES, COUNTS)
    assert nothing.moving == (24, 0), "an empty range, whatever is joined with it"


def test_words_along_a_stretch() -> None:
    for position in (7, 8, 11):
        assert STRETCH.words_at(position).tolist() == arena_at(position)[[1, 4]].tolist()


def test_where_a_stretch_holds() -> None:
    for position in (7, 8, 11):
        assert STRETCH.holds(position, arena_at(position), COUNTS)
        assert not STRETCH.holds(position, arena_at(position), COUNTS + 1)
        other = arena_at(position)
        other[2] += 1
        assert not STRETCH.holds(position, other, COUNTS)
    assert not STRETCH.holds(12, arena_at(12), COUNTS)
    before = WORDS.copy()
    before[STRETCH.places] -= CHANGES[:, 1]  # the words that it would have had at 6
    assert not STRETCH.holds(6, before, COUNTS)


# A profile ----------------------------------------------------------------------------------------


def test_a_profile_is_of_a_place_in_the_context() -> None:
    forgotten: list[bool] = []

    async def inputs(tokens: list[int], position: int) -> tuple[list[int], int]:
        return tokens, position

    async def profile(given: Any) -> Any:
        return given

    async def profiled(context: int) -> Any:
        model: Any = SimpleNamespace(
            context=8,
            _turn=asyncio.Lock(),
            while_loaded=nullcontext,
            session=SimpleNamespace(forget=lambda: forgotten.append(True), inputs=inputs),
            graph=SimpleNamespace(profile=profile),
        )
        return await Model.profile(model, context)

    for context in (0, 1, 7):
        assert wait(profiled(context)) == ([0], context)
    assert len(forgotten) == 3
    for context in (-1, 8):
        with pytest.raises(ContextLengthError):
            wait(profiled(context))
