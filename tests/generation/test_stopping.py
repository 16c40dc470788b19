"""Stop: within one chunk or one token, keeping what was written; the next turn goes on there."""

import inspect

import pytest

from py_runtime.base.cancel import CancelToken
from py_runtime.base.concurrency import until_cancelled
from py_runtime.base.errors import AbortedError
from py_runtime.generation.device_sampler import MAX_DRAWS
from py_runtime.generation.pace import (
    BATCH_SECONDS,
    CHUNK_SECONDS,
    MIN_PREFILL_CHUNK,
    BatchPace,
    PrefillPace,
)
from tests.generation.conftest import Toy
from tests.runners import wait

PROMPT = [5 + place % 200 for place in range(200)]
GREEDY = {"temperature": 0, "max_tokens": 6, "ignore_eos": True}
LONG = {**GREEDY, "max_tokens": 200}


def test_stopped_while_the_prompt_is_read(toy: Toy) -> None:
    stopped, again, fresh = toy.ask(
        {"prompt": PROMPT, "fields": GREEDY, "chunk": 16, "cancel_at_chunk": 3},
        {"prompt": PROMPT, "fields": GREEDY, "chunk": 16},
        {"prompt": PROMPT, "fields": GREEDY, "chunk": 16, "forget": True},
    )
    assert stopped["finish_reason"] == "abort"
    assert stopped["computed"] == 3 * 16
    assert (stopped["text"], stopped["tokens"]) == ("", [])
    assert stopped["usage"]["completion_tokens"] == 0
    assert stopped["usage"]["time_to_first_token_s"] is None
    assert again["usage"]["cached_tokens"] == 3 * 16  # what was computed is used
    assert again["progress"][0] == [4 * 16, 200]
    assert again["tokens"] == fresh["tokens"]


def test_stopped_while_it_answers(toy: Toy) -> None:
    stopped, fresh, going_on = toy.ask(
        {"prompt": PROMPT, "fields": LONG, "cancel_at_piece": 3},
        {"prompt": PROMPT, "fields": LONG, "forget": True},
        {"prompt": PROMPT, "fields": LONG},
    )
    assert stopped["finish_reason"] == "abort"
    written = stopped["usage"]["completion_tokens"]
    assert 3 <= written <= 7, "a piece is a batch: of 1, of 1 or 2, of at most 4 tokens"
    assert stopped["tokens"] == fresh["tokens"][:written]
    assert fresh["text"].startswith(stopped["text"].rstrip("\N{REPLACEMENT CHARACTER}"))
    assert stopped["cache"] == [*PROMPT, *stopped["tokens"][:-1]]
    assert going_on["tokens"] == fresh["tokens"]


def test_stopped_before_it_began(toy: Toy) -> None:
    (stopped,) = toy.run("ask_cancelled", prompt=PROMPT, fields=GREEDY)
    assert stopped["finish_reason"] == "abort"
    assert stopped["computed"] == 0


@pytest.mark.parametrize("during", ["prompt", "answer"])
def test_stopped_while_the_device_computes(toy: Toy, during: str) -> None:
    """Stop waits for no chunk and no batch, however long the device takes for it."""
    fields = {**GREEDY, "max_tokens": 1}
    outcomes = toy.run("stop_while_computing", prompt=PROMPT, fields=fields, during=during)
    stopped, again, once_more = outcomes
    assert stopped["finish_reason"] == "abort"
    assert again["finish_reason"] == "length"
    assert again["tokens"] == once_more["tokens"]


def test_stopped_while_another_answers(toy: Toy) -> None:
    """It waits for its turn; Stop ends that at once, and leaves the other alone."""
    outcome = toy.run("ask_while_busy", prompt=PROMPT, fields=GREEDY)
    assert outcome["waiting"]["finish_reason"] == "abort"
    assert outcome["first_to_end"] == "waiting"
    assert outcome["busy"]["finish_reason"] == "length"
    assert outcome["busy"]["tokens"] == outcome["next"]["tokens"]


def test_answers_take_turns(toy: Toy) -> None:
    together = toy.run("ask_together", prompts=[PROMPT, PROMPT[:50], [7]], fields=GREEDY)
    alone = toy.ask(
        *({"prompt": prompt, "fields": GREEDY} for prompt in (PROMPT, PROMPT[:50], [7]))
    )
    assert [answer["tokens"] for answer in together["answers"]] == [a["tokens"] for a in alone]
    assert together["order"] == [0] * 6 + [1] * 6 + [2] * 6


def test_a_user_may_leave_the_loop(toy: Toy) -> None:
    answer = toy.run("leave_early")
    assert answer["finish_reason"] == "length"
    assert answer["usage"]["cached_tokens"] == 2


# The length of a chunk --------------------------------------------------------------------------


def test_chunks_follow_the_speed() -> None:
    pace = PrefillPace(512)
    first = pace.next_chunk()
    assert MIN_PREFILL_CHUNK <= first < 512  # unknown speed: a careful start
    pace.took(first, CHUNK_SECONDS * first / 100)
    assert pace.next_chunk() == 64  # the power of two below 100 tokens
    pace.took(64, CHUNK_SECONDS / 100)
    assert pace.next_chunk() == 512
    pace.took(512, CHUNK_SECONDS * 4)
    assert pace.next_chunk() == 128
    pace.took(128, 1000)
    assert pace.next_chunk() == MIN_PREFILL_CHUNK


def test_chunks_get_shorter_as_attention_grows() -> None:
    """However long the prompt is, no chunk takes much longer than Stop may wait, or a frame."""
    pace, context = PrefillPace(512), 32768
    position, sizes, taken = 0, [], []
    while position < context:
        chunk = min(pace.next_chunk(), context - position)
        seconds = chunk * CHUNK_SECONDS / 600 * (1 + position / 4000)
        pace.took(chunk, seconds)
        sizes.append(chunk)
        taken.append(seconds)
        position += chunk
    assert max(taken) <= 1.2 * CHUNK_SECONDS
    assert (max(sizes), sizes[-2]) == (512, 64)


def test_a_short_chunk_tells_only_that_it_was_slow() -> None:
    """A prompt's last chunk, or a decoded token, is mostly overhead."""
    pace = PrefillPace(512)
    pace.took(32, CHUNK_SECONDS * 32 / 256)
    assert pace.next_chunk() == 256
    pace.took(17, CHUNK_SECONDS / 2)
    pace.took(1, CHUNK_SECONDS * 2)
    assert pace.next_chunk() == 256
    pace.took(64, CHUNK_SECONDS * 2)
    assert pace.next_chunk() == 32


def test_the_shortest_chunk_that_tells_something() -> None:
    pace = PrefillPace(512)
    pace.took(MIN_PREFILL_CHUNK, CHUNK_SECONDS)  # short, and just not slow
    assert pace.next_chunk() == 2 * MIN_PREFILL_CHUNK
    pace.took(MIN_PREFILL_CHUNK - 1, 9 * CHUNK_SECONDS)
    assert pace.next_chunk() == 2 * MIN_PREFILL_CHUNK
    pace.took(MIN_PREFILL_CHUNK, 1.5 * CHUNK_SECONDS)
    assert pace.next_chunk() == MIN_PREFILL_CHUNK


@pytest.mark.parametrize("largest", [1, 7, 16, 100])
def test_chunks_fit_the_graph(largest: int) -> None:
    pace = PrefillPace(largest)
    for tokens, seconds in ((32, 1e-9), (512, 10), (1, 0), (largest, 0)):
        assert 1 <= pace.next_chunk() <= largest
        pace.took(tokens, seconds)
    assert 1 <= pace.next_chunk() <= largest


# The length of a batch --------------------------------------------------------------------------


def test_batches_double_until_they_take_long_enough() -> None:
    pace, now = BatchPace(), 0.0
    steps = []
    pace.begin()
    for tokens in (1, 1, 2, 4, 8, 8):
        pace.arrived(tokens, now)
        steps.append(pace.steps)
        now += BATCH_SECONDS * pace.steps / 10.5  # the GPU draws ten in that time
    assert steps == [1, 2, 4, 8, 10, 8]


def test_the_next_answer_begins_with_the_batches_that_were_found() -> None:
    pace = BatchPace()
    pace.begin()
    for number in range(30):
        pace.arrived(pace.steps, 1e-6 * number)
    assert pace.steps == MAX_DRAWS
    pace.begin()
    pace.arrived(1, 1000.0)  # a long prompt's first token
    assert pace.steps == MAX_DRAWS
    pace.arrived(MAX_DRAWS, 1000.0 + 1.99 * BATCH_SECONDS)
    assert pace.steps == MAX_DRAWS // 2
    pace.arrived(1, 2000.0)
    assert pace.steps == 1


def test_cancelling_twice_calls_back_once() -> None:
    token, calls = CancelToken(), []
    token.on_cancel(lambda: calls.append("before"))
    token.check()
    token.cancel()
    token.cancel()
    token.on_cancel(lambda: calls.append("after"))
    assert calls == ["before", "after"]


def test_work_that_is_cancelled_before_it_begins_is_closed() -> None:
    async def work() -> None:
        raise AssertionError("it must not begin")

    token, coroutine = CancelToken(), work()
    token.cancel()
    with pytest.raises(AbortedError):
        wait(until_cancelled(coroutine, token))
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED, "Python would warn of it"
