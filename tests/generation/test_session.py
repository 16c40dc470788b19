"""A session over a graph that writes down what it is asked for.

The tests show which chunks go through it, what is measured and told of them, and where it resumes.
"""

from itertools import pairwise
from typing import Any, cast

import numpy as np
import pytest

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import AbortedError
from py_runtime.generation.kept_states import TAIL, KeptStates
from py_runtime.generation.session import Session
from py_runtime.graph.carried_states import COPIES, StateCopies
from py_runtime.graph.rings import Ring
from tests.runners import wait

CHUNK = 5


class FakeCopies:
    def __init__(self, log: list[Any]) -> None:
        self.log = log

    def keep(self, copy: int) -> None:
        self.log.append(("keep", copy))

    def put_back(self, copy: int) -> None:
        self.log.append(("put back", copy))


class FakeGraph:
    """A graph whose logits are the last token and how many went in before it."""

    def __init__(self, log: list[Any], states: bool, rings: list[Ring]) -> None:
        self.log = log
        self.state_copies = FakeCopies(log) if states else None
        self.rings = rings

    async def run(self, inputs: list[np.ndarray], outputs: list[int]) -> list[np.ndarray]:
        await self.compute(inputs, outputs)
        return [np.array([[inputs[0][0, -1], inputs[1][0]]])]

    async def compute(self, inputs: list[np.ndarray], outputs: list[int]) -> None:
        assert inputs[0].shape[0] == 1
        kind = "logits" if outputs else "chunk"
        self.log.append((kind, int(inputs[1][0]), inputs[0].shape[1], len(inputs)))

    async def finish(self) -> None:
        self.log.append("finish")


class FakePace:
    def __init__(self, log: list[Any]) -> None:
        self.log = log

    def next_chunk(self) -> int:
        return CHUNK

    def took(self, tokens: int, seconds: float) -> None:
        assert 0 <= seconds < 100
        self.log.append(("took", tokens))


class FakeModel:
    max_chunk, context = CHUNK, 512
    image_rows: None = None
    proposer: None = None
    token_rows: Any = None

    def __init__(self, *, states: bool = False, rings: list[Ring] | None = None) -> None:
        self.log: list[Any] = []
        self.graph: Any = FakeGraph(self.log, states, rings or [])
        self.session = Session(self)
        self.session._pace = FakePace(self.log)  # type: ignore[assignment]

    async def recover(self) -> None:
        raise AssertionError("nothing was lost")

    give_up_device = recover

    def computed(self, tokens: list[int]) -> list[Any]:
        """Return what the graph was asked for, in short."""
        self.log.clear()
        wait(self.session.logits_after(tokens, CancelToken()))
        return [entry[:3] for entry in self.log if entry[0] in ("logits", "chunk")]


def test_a_prompt_in_chunks_is_measured_and_told() -> None:
    model, told = FakeModel(), []
    prompt = list(range(10, 23))
    logits = wait(model.session.logits_after(prompt, CancelToken(), lambda *row: told.append(row)))
    assert logits.tolist() == [22, 10]  # of the last chunk, which begins at 10
    assert model.log == [
        *(("chunk", 0, 5, 2), "finish", ("took", 5)),
        *(("chunk", 5, 5, 2), "finish", ("took", 5)),
        *(("logits", 10, 3, 2), ("took", 3)),
    ]
    assert told == [(5, 13), (10, 13), (13, 13)]
    assert (model.session.tokens, model.session.computed_tokens) == (prompt, 13)


def test_logits_that_stay_on_the_gpu_tell_no_time() -> None:
    """The call returns before they are there; chunks before them were waited for."""
    model, told = FakeModel(), []
    prompt = list(range(7))
    wait(model.session.compute_after(prompt, CancelToken(), lambda *row: told.append(row)))
    assert model.log == [("chunk", 0, 5, 2), "finish", ("took", 5), ("logits", 5, 2, 2)]
    assert told == [(5, 7), (7, 7)]
    model.log.clear()
    wait(model.session.compute_after([*prompt, 9], CancelToken(), lambda *row: told.append(row)))
    assert model.log == [("logits", 7, 1, 2)]
    assert told == [(5, 7), (7, 7)], "nobody waits for one"


def test_every_chunk_by_the_callers_own_graph() -> None:
    model, seen = FakeModel(), []
    wait(model.session.logits_after([1, 2, 3], CancelToken()))

    async def run(inputs: list[np.ndarray]) -> list[np.ndarray]:
        seen.append(inputs[0][0].tolist())
        return [inputs[0]]

    model.log.clear()
    wait(model.session.compute_each([1, 2, 3, 4, 5, 6, 7], CancelToken(), run))
    assert seen == [[1, 2, 3, 4, 5], [6, 7]], "from the first token on, whatever was held"
    assert model.log == [("took", 5), ("took", 2)]


def test_only_what_differs_is_computed() -> None:
    model = FakeModel()
    assert model.computed([1, 2, 3, 4]) == [("logits", 0, 4)]
    assert model.session.reusable([1, 2, 3, 4]) == 3, "all but the last, whose logits count"
    assert model.computed([1, 2, 3, 4]) == [("logits", 3, 1)]
    assert model.session.reusable([1, 2, 3, 4, 5]) == 4
    assert model.session.reusable([1, 9, 3, 4, 5]) == 1
    assert model.session.reusable([9]) == 0
    assert model.computed([1, 9, 3, 4, 5]) == [("logits", 1, 4)]
    assert model.session.tokens == [1, 9, 3, 4, 5]
    assert model.session.computed_tokens == 9
    assert model.session.begin_anew() is model.session
    assert (model.session.tokens, model.session.computed_tokens) == ([], 0)
    assert model.session.waited_s == 0


def test_who_cancels_keeps_what_is_computed() -> None:
    model, cancel = FakeModel(), CancelToken()

    def stop(done: int, total: int) -> None:
        cancel.cancel()

    with pytest.raises(AbortedError):
        wait(model.session.logits_after(list(range(9)), cancel, stop))
    assert model.session.tokens == [0, 1, 2, 3, 4]


def test_rows_that_tokens_bring_along_are_the_last_input() -> None:
    class Rows:
        columns = 3

        async def read(self, tokens: Any) -> np.ndarray:
            return np.zeros((1, len(tokens), self.columns), np.float32)

    model = FakeModel()
    model.token_rows = Rows()
    wait(model.session.logits_after([1, 2], CancelToken()))
    assert model.log[0] == ("logits", 0, 2, 3)
    given = wait(model.session.inputs([4, 5], 7))
    assert [(part.tolist(), str(part.dtype)) for part in given[:2]] == [
        ([[4, 5]], "int64"),
        ([7], "int64"),
    ]
    assert given[2].shape == (1, 2, 3)


@pytest.mark.parametrize(
    ("length", "steps"),
    [  # where each begins, how many tokens it has, whether states are copied before it
        (1, [(0, 1, False)]),
        (2, [(0, 2, True)]),
        (TAIL - 1, [(0, 5, True), (5, 2, True)]),
        (TAIL, [(0, 5, True), (5, 3, True)]),
        (TAIL + 1, [(0, 1, False), (1, 5, True), (6, 3, True)]),
        (TAIL + 9, [(0, 5, False), (5, 4, False), (9, 5, True), (14, 3, True)]),
    ],
)
def test_the_end_of_a_prompt_goes_by_itself_where_there_are_states(
    length: int, steps: list[tuple[int, int, bool]]
) -> None:
    model = FakeModel(states=True)
    assert model.computed(list(range(length))) == [
        ("logits" if start + count == length else "chunk", start, count)
        for start, count, _ in steps
    ]
    asked = [entry[0] for entry in model.log if entry[0] in ("keep", "logits", "chunk")]
    kept = [before == "keep" for before, kind in pairwise(["", *asked]) if kind != "keep"]
    assert kept == [is_kept for _, _, is_kept in steps]


def test_states_go_back_to_a_copy_or_to_the_start() -> None:
    model = FakeModel(states=True)
    prompt = list(range(20))
    model.computed(prompt)
    model.session.states._kept = {0: 12}  # as after a prompt whose end went by itself
    assert model.session.reusable([*range(14), 99]) == 12
    assert model.computed([*range(14), 99])[0][1] == 12
    assert ("put back", 0) in model.log
    assert model.session.reusable([0, 1, 99]) == 0
    assert model.computed([0, 1, 99])[0][1] == 0
    assert model.session.reusable([0, 1, 99, 5]) == 3, "on from where they are"


def test_copies_take_turns_beside_that_of_the_prompt() -> None:
    log: list[Any] = []
    states, copies = KeptStates(), cast(StateCopies, FakeCopies(log))
    states.keep_batch(copies)  # of a position that is not known
    assert log == []
    for position in (10, 11, 12, 13):
        states.reach(position)
        keep = states.keep_prompt if position == 10 else states.keep_batch
        keep(copies)
    taken = [copy for _, copy in log]
    assert taken[0] == 0
    assert {*taken[1:]} == {*range(1, COPIES)}
    assert taken[1] == taken[3]
    assert [states.last_up_to(most) for most in (9, 10, 11, 12, 13, 99)] == [0, 10, 10, 12, 13, 13]
    states.keep_prompt(copies)
    states.keep_prompt(copies)  # where its copy is already
    assert len(log) == 5
    states.leave()
    assert states.last_up_to(99) == 13, "the copies stay when the states themselves move on"
    assert states.go_back(copies, 12) == 12
    assert states.last_up_to(99) == 12, "what was kept of later tokens is dropped"
    states.forget()
    assert states.last_up_to(99) == 0


@pytest.mark.parametrize(
    ("rows", "window", "back_to", "goes_on_at"),
    [
        *((12, 4, 11, 11), (12, 4, 10, 0), (12, 5, 11, 0), (12, 4, 1, 0)),
        *((20, 4, 1, 1), (20, 4, 0, 0), (19, 4, 2, 0)),
    ],
)
def test_rings_hold_what_was_written_last(
    rows: int, window: int, back_to: int, goes_on_at: int
) -> None:
    """Twenty positions are written: a ring of 12 has those from 8 on."""
    model = FakeModel(rings=[Ring(99, 1), Ring(rows, window)])
    prompt = list(range(20))
    model.computed(prompt)
    changed = [*prompt[:back_to], 99]
    assert model.session.reusable(changed) == goes_on_at
    assert model.computed(changed)[0][1] == goes_on_at
