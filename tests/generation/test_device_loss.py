"""A lost device: another one is taken, the tokens are computed again, the text stays the same."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Set
from typing import Any, cast

import numpy as np
import pytest

from py_runtime.base import notices
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import (
    AbortedError,
    GpuDeviceLostError,
    GpuUnavailableError,
    NetworkError,
)
from py_runtime.devices import recovery
from py_runtime.devices.recovery import MAX_LOSSES
from py_runtime.generation.session import Session, TokenRows
from tests.generation.conftest import Toy
from tests.runners import wait


def test_the_same_text_after_a_loss(native_toy: Toy) -> None:
    """The device here is real; tests/app loses it three times in a row, in the page."""
    fields = {"temperature": 0, "max_tokens": 8, "ignore_eos": True}
    outcome = native_toy.run("lose_the_device", fields=fields)
    wanted = outcome["undisturbed"]["tokens"]
    assert len(wanted) == 8
    assert outcome["tokens"] == wanted
    assert outcome["afterwards"]["tokens"] == wanted
    assert outcome["afterwards"]["usage"]["cached_tokens"] == 99
    assert outcome["buffers"] == 0


class FakeGraph:
    """A decoder whose logits tell every token it was fed; calls with these numbers lose it."""

    state_copies = None
    rings = ()

    def __init__(self, calls: Iterator[int], lost_at: Set[int]) -> None:
        self.fed: list[int] = []
        self._calls = calls
        self._lost_at = lost_at

    async def run(self, inputs: list[np.ndarray], outputs: list[int]) -> list[np.ndarray]:
        tokens, start = inputs[0][0].tolist(), int(inputs[1][0])
        await self.finish()
        assert start <= len(self.fed), "a gap in the cache"
        self.fed[start:] = tokens
        return [np.array([[hash(tuple(self.fed)) % 1000]])] if outputs else []

    async def compute(self, inputs: list[np.ndarray], outputs: list[int]) -> None:
        await self.run(inputs, outputs)

    async def finish(self) -> None:
        if next(self._calls) in self._lost_at:
            raise GpuDeviceLostError("the GPU device was lost")


class FakeModel:
    max_chunk = 4
    context = 512
    has_cpu = False
    image_rows: None = None
    proposer: None = None
    token_rows: TokenRows | None = None

    def __init__(
        self, lost_at: Set[int] = frozenset(), broken: list[Exception] | None = None
    ) -> None:
        self._calls = iter(range(10_000))
        self._lost_at = lost_at
        self._broken = broken or []
        self.given_up = 0
        self.graph: Any = FakeGraph(self._calls, lost_at)
        self.session = Session(self)

    async def recover(self) -> None:
        if self._broken:
            raise self._broken.pop()
        self.graph = FakeGraph(self._calls, self._lost_at)

    async def give_up_device(self) -> None:
        """Nothing is lost on the CPU."""
        self.given_up += 1
        if not self.has_cpu:
            raise LOST
        self.graph = FakeGraph(self._calls, frozenset())

    def logits(self, tokens: list[int], cancel: CancelToken | None = None) -> float:
        row = wait(self.session.logits_after(tokens, cancel or CancelToken()))
        return float(row[0])


TOKENS = list(range(1, 15))
LOST = GpuDeviceLostError("lost again")


@pytest.fixture
def heard() -> Iterator[list[str]]:
    kinds: list[str] = []
    stop = notices.listen(lambda notice: kinds.append(notice["kind"]))
    yield kinds
    stop()


@pytest.mark.parametrize("lost_at", [{0}, {3}, {6}, {0, 1, 2}, {2, 5, 11}, {6, 13, 20}])
def test_any_call_may_lose_it(lost_at: set[int], heard: list[str]) -> None:
    model = FakeModel(lost_at)
    assert model.logits(TOKENS) == FakeModel().logits(TOKENS)
    assert heard == ["device_lost", "recovered"] * len(lost_at)
    assert model.session.tokens == model.graph.fed == TOKENS


def test_a_loss_between_two_turns(heard: list[str]) -> None:
    model = FakeModel({7})
    model.logits(TOKENS)
    assert model.logits([*TOKENS, 20, 21]) == FakeModel().logits([*TOKENS, 20, 21])
    assert heard == ["device_lost", "recovered"]


def test_a_loss_while_it_is_replaced(heard: list[str]) -> None:
    model = FakeModel({3}, broken=[LOST, LOST])
    assert model.logits(TOKENS) == FakeModel().logits(TOKENS)
    assert heard == ["device_lost", "recovered"]


def test_a_device_that_is_lost_for_ever() -> None:
    model = FakeModel(broken=[LOST] * 100, lost_at={2})
    with pytest.raises(GpuDeviceLostError):
        model.logits(TOKENS)
    assert len(model._broken) >= 100 - MAX_LOSSES
    assert model.given_up == 1


@pytest.mark.parametrize("fault", [LOST, GpuUnavailableError("no adapter is left")])
def test_the_cpu_goes_on_where_the_gpu_was_lost_too_often(
    fault: Exception, heard: list[str]
) -> None:
    model = FakeModel(broken=[fault] * 100, lost_at={2})
    model.has_cpu = True
    assert model.logits(TOKENS) == FakeModel().logits(TOKENS)
    assert len(model._broken) == 100 - (MAX_LOSSES - 1), "it was given up no sooner"
    assert model.logits([*TOKENS, 20]) == FakeModel().logits([*TOKENS, 20])
    assert model.given_up == 1
    assert heard == ["device_lost"]


def test_what_comes_one_by_one_goes_on_upon_the_cpu() -> None:
    model = FakeModel()
    model.has_cpu = True
    counting = Counting(4, {3: MAX_LOSSES})
    assert wait(all_of(model, counting, CancelToken())) == [1, 2, 3, 4]
    assert model.given_up == 1


def test_what_failed_to_be_replaced_is_replaced_the_next_time(heard: list[str]) -> None:
    model = FakeModel({3}, broken=[NetworkError("the network is down")])
    with pytest.raises(NetworkError):
        model.logits(TOKENS)
    assert heard == ["device_lost"]
    assert model.logits(TOKENS) == FakeModel().logits(TOKENS)
    assert heard == ["device_lost", "recovered"]


def test_stopped_while_it_is_replaced() -> None:
    cancel = CancelToken()
    model = FakeModel({3})
    stop = notices.listen(lambda notice: cancel.cancel())
    with pytest.raises(AbortedError):
        model.logits(TOKENS, cancel)
    stop()
    assert model.logits(TOKENS) == FakeModel().logits(TOKENS)


def test_stopped_while_a_replacement_does_not_come() -> None:
    """Its weights may come from a network that has stalled."""
    cancel = CancelToken()
    model = FakeModel({3})
    come = model.recover

    async def wait_for_ever() -> None:
        cancel.cancel()
        await asyncio.Event().wait()

    model.session.device._replace = wait_for_ever
    with pytest.raises(AbortedError):
        model.logits(TOKENS, cancel)
    model.session.device._replace = come
    assert model.logits(TOKENS) == FakeModel().logits(TOKENS)


class Counting:
    """1, 2, 3, … as they come: those of `lost_before` only once the device was lost so often."""

    def __init__(self, last: int, lost_before: dict[int, int]) -> None:
        self.came = 0
        self.asked = 0
        self._last = last
        self._lost_before = lost_before

    async def rest(self) -> AsyncGenerator[int, None]:
        self.asked += 1
        while self.came < self._last:
            if self._lost_before.get(self.came + 1, 0) > 0:
                self._lost_before[self.came + 1] -= 1
                raise LOST
            self.came += 1
            yield self.came


async def all_of(model: FakeModel, counting: Counting, cancel: CancelToken) -> list[int]:
    return [each async for each in model.session.device.survive_each(counting.rest, cancel)]


def test_what_comes_one_by_one_goes_on_where_it_stopped(heard: list[str]) -> None:
    """More losses than the limit, but never so many in a row."""
    counting = Counting(4, {1: MAX_LOSSES - 1, 3: MAX_LOSSES - 1, 4: 1})
    assert wait(all_of(FakeModel(), counting, CancelToken())) == [1, 2, 3, 4]
    assert heard == ["device_lost", "recovered"] * (2 * MAX_LOSSES - 1)


def test_what_comes_one_by_one_gives_up_after_as_many_losses_as_anything() -> None:
    counting = Counting(4, {3: 100})
    with pytest.raises(GpuDeviceLostError):
        wait(all_of(FakeModel(), counting, CancelToken()))
    assert (counting.came, counting.asked) == (2, MAX_LOSSES)


def test_what_comes_one_by_one_is_stopped_while_the_device_is_replaced() -> None:
    cancel = CancelToken()
    stop = notices.listen(lambda notice: cancel.cancel())
    with pytest.raises(AbortedError):
        wait(all_of(FakeModel(), Counting(4, {3: 1}), cancel))
    stop()


def test_what_may_stay_undone_leaves_a_lost_device_to_what_follows(heard: list[str]) -> None:
    model = FakeModel({0})
    wait(model.session.device.attempt(model.graph.finish()))
    assert heard == ["device_lost"]
    assert model.logits(TOKENS) == FakeModel().logits(TOKENS)
    assert heard == ["device_lost", "recovered"]


def test_what_is_loaded_onto_a_lost_device_goes_onto_another(
    monkeypatch: pytest.MonkeyPatch, heard: list[str]
) -> None:
    """Nobody is told: nothing of theirs was on it. Whether it can be cancelled is all the same."""

    async def another(device: Any) -> Any:
        return device + 1

    monkeypatch.setattr(recovery, "newest", lambda device: device)
    monkeypatch.setattr(recovery, "replacement", another)

    async def load(device: Any) -> str:
        if device < 12:
            raise LOST
        return f"on {device}"

    for cancel in (None, CancelToken()):
        assert wait(recovery.load_onto(cast(Any, 10), load, cancel)) == "on 12"
    assert heard == []
    stopped = CancelToken()
    stopped.cancel()
    with pytest.raises(AbortedError):
        wait(recovery.load_onto(cast(Any, 10), load, stopped))
