"""A context that is full: an error with both numbers, or the oldest turns go. Never junk."""

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from py_runtime.base.errors import ContextLengthError
from py_runtime.generation.messages import Message
from py_runtime.generation.options import GenerationOptions
from py_runtime.generation.overflow import fit_messages
from tests.generation.conftest import Toy
from tests.toy_model import CONTEXT

pytestmark = pytest.mark.thorough_in_page

GREEDY = {"temperature": 0, "max_tokens": 4, "ignore_eos": True}
DROPPING = {**GREEDY, "context_overflow": "drop_oldest"}
WORDS = "B-C-D-E-F-G-H-I-J-K-L-M-N"  # a token for each character


def message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def test_the_last_place_of_the_context(toy: Toy) -> None:
    fits, full, over = toy.ask(
        *({"prompt": [7] * length, "fields": GREEDY} for length in (511, 512, 513))
    )
    assert len(fits["tokens"]) == 1
    assert fits["finish_reason"] == "length"
    for answer, length in ((full, 512), (over, 513)):
        error = answer["error"]
        assert error["code"] == "context_length_exceeded"
        assert (error["prompt_tokens"], error["context"]) == (length, CONTEXT)
        assert str(length) in error["message"]
        assert str(CONTEXT) in error["message"]


def test_an_answer_that_reaches_the_end_of_the_context(toy: Toy) -> None:
    fields = {"temperature": 0, "ignore_eos": True}
    (answer,) = toy.ask({"prompt": [7] * 506, "fields": fields})
    assert answer["finish_reason"] == "length"
    assert len(answer["tokens"]) == 6
    assert len(answer["cache"]) == CONTEXT - 1  # the last token needs no place


def test_an_error_leaves_the_cache_alone(native_toy: Toy) -> None:
    _, refused, again = native_toy.ask(
        {"prompt": [7] * 100, "fields": GREEDY},
        {"prompt": [7] * 600, "fields": GREEDY},
        {"prompt": [7] * 100, "fields": GREEDY},
    )
    assert refused["error"]["code"] == "context_length_exceeded"
    assert again["usage"]["cached_tokens"] == 99


@pytest.mark.parametrize("system", [None, "You are a brief and friendly toy."])
def test_the_oldest_turns_go(toy: Toy, system: str | None) -> None:
    """Thirty turns in a context of nine: each drop makes room for several turns."""
    head = [message("system", system)] if system else []
    messages, answers, cached = list(head), [], []
    for turn in range(30):
        messages.append(message("user", f"{turn}: {WORDS}"))
        step = {"messages": messages, "fields": DROPPING}
        (answer,) = toy.run("ask", steps=[step], keep_cache=turn > 0)
        messages.append(message("assistant", WORDS[:20]))
        answers.append(answer)
        usage = answer["usage"]
        cached.append(usage["prompt_tokens"] - usage["cached_tokens"])
        assert usage["prompt_tokens"] + GREEDY["max_tokens"] <= CONTEXT
    dropped = [answer["usage"]["dropped_messages"] for answer in answers]
    drops = [turn for turn in range(1, 30) if dropped[turn] > dropped[turn - 1]]
    assert dropped == sorted(dropped)
    assert 2 <= len(drops) <= 8
    assert min(later - earlier for earlier, later in itertools.pairwise(drops)) >= 3
    assert all(count % 2 == 0 for count in dropped)  # whole turns
    between = [cached[turn] for turn in range(1, 30) if turn not in drops]
    assert max(between) < 60  # a question and an answer: the rest is in the cache
    last_kept = [*head, *messages[len(head) + dropped[-1] : -1]]
    (prompt,) = toy.run("encode", chats=[last_kept])
    assert answers[-1]["cache"][: len(prompt)] == prompt


def test_a_regenerated_answer_drops_the_same(native_toy: Toy) -> None:
    messages = [message("user" if turn % 2 == 0 else "assistant", WORDS) for turn in range(41)]
    first, again = native_toy.ask(*[{"messages": messages, "fields": DROPPING}] * 2)
    assert first["usage"]["dropped_messages"] == again["usage"]["dropped_messages"] > 0
    assert again["usage"]["cached_tokens"] == again["usage"]["prompt_tokens"] - 1
    assert again["tokens"] == first["tokens"]


def test_what_fits_is_left_alone(native_toy: Toy) -> None:
    messages = [message("user", WORDS), message("assistant", WORDS), message("user", WORDS)]
    dropping, plain = native_toy.ask(
        {"messages": messages, "fields": DROPPING}, {"messages": messages, "fields": GREEDY}
    )
    assert dropping["usage"]["dropped_messages"] == 0
    assert dropping["tokens"] == plain["tokens"]


@pytest.mark.parametrize(
    ("context", "max_tokens", "reserved"),
    [
        (1000, None, 250),  # a quarter of the context
        (1000, 300, 250),
        (1000, 249, 249),
        (8000, None, 512),
        (8000, 600, 512),
    ],
)
def test_room_for_the_answer(context: int, max_tokens: int | None, reserved: int) -> None:
    options = GenerationOptions(max_tokens=max_tokens, context_overflow="drop_oldest")

    def dropped(length: int) -> int:
        """Return how many messages are dropped from a chat with so many tokens, one a character."""
        texts = ["hi", "ho", "b" * (length - 4)]
        messages = [message(role, text) for role, text in zip(ROLES, texts, strict=True)]
        prompt, count = fit_messages(messages, encode_chat, list_of_bytes, context, options)
        assert len(prompt) == length - 4 * (count > 0)
        return count

    assert dropped(context - reserved) == 0
    assert dropped(context - reserved + 1) == 2


ROLES = ("user", "assistant", "user")


def encode_chat(messages: Sequence[Message]) -> list[int]:
    return [byte for each in messages for byte in list_of_bytes(each["content"])]


def list_of_bytes(text: str) -> list[int]:
    return list(text.encode())


TOO_LONG: dict[str, list[Any]] = {
    "a turn": [message("user", "hi"), message("user", f"{WORDS} " * 60)],
    "a system prompt": [message("system", f"{WORDS} " * 60), message("user", "hi")],
    "nothing but a system prompt": [message("system", f"{WORDS} " * 60)],
}


@pytest.mark.parametrize("name", TOO_LONG)
def test_one_turn_alone_is_too_long(native_toy: Toy, name: str) -> None:
    (answer,) = native_toy.ask({"messages": TOO_LONG[name], "fields": DROPPING})
    error = answer["error"]
    assert error["code"] == "context_length_exceeded"
    assert error["prompt_tokens"] > error["context"] == CONTEXT


def test_the_last_turn_may_take_the_answers_room(native_toy: Toy) -> None:
    """Rather a short answer than none."""
    messages = [message("user", "hi"), message("assistant", "ho"), message("user", "b" * 480)]
    fields = {"temperature": 0, "ignore_eos": True, "context_overflow": "drop_oldest"}
    (answer,) = native_toy.ask({"messages": messages, "fields": fields})
    assert answer["usage"]["dropped_messages"] == 2
    assert answer["finish_reason"] == "length"
    assert len(answer["tokens"]) == CONTEXT - answer["usage"]["prompt_tokens"] > 0


@pytest.mark.parametrize("overflow", ["error", "drop_oldest"])
def test_a_question_that_no_dropping_makes_fit_is_called_so(overflow: str) -> None:
    """Refuse it for good: whoever asks again without the oldest turns is refused again."""
    options = GenerationOptions(context_overflow=overflow)
    alone = [message("system", "Be brief."), message("user", "b" * 100)]
    with pytest.raises(ContextLengthError) as refused:
        fit_messages(alone, encode_chat, list_of_bytes, 100, options)
    assert refused.value.said is not None
    assert refused.value.said["code"] == "question_too_long"


def test_the_last_question_of_a_chat_is_named_where_dropping_did_not_help() -> None:
    options = GenerationOptions(context_overflow="drop_oldest")
    messages = [message("user", "hi"), message("assistant", "ho"), message("user", "b" * 100)]
    with pytest.raises(ContextLengthError) as refused:
        fit_messages(messages, encode_chat, list_of_bytes, 100, options)
    assert refused.value.said is not None
    assert refused.value.said["code"] == "question_too_long"
    assert refused.value.prompt_tokens == 100
