"""The cache: what a prompt shares with the last one is not computed again, and does not show."""

from typing import Any

import numpy as np
import pytest

from tests.generation.conftest import Toy

pytestmark = pytest.mark.thorough_in_page

GREEDY = {"temperature": 0, "max_tokens": 6, "ignore_eos": True}
FIRST = "the quick brown fox"
LONG = " ".join(["the quick brown fox jumps over the lazy dog"] * 12)


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def chat(*texts: str) -> list[dict[str, str]]:
    """User and assistant take turns."""
    return [(user, assistant)[place % 2](text) for place, text in enumerate(texts)]


def shared(first: list[int], second: list[int]) -> int:
    pairs = list(zip(first, second, strict=False))
    return next((at for at, (a, b) in enumerate(pairs) if a != b), len(pairs))


SECOND_CHATS = {
    "a second turn": (chat(FIRST), chat(FIRST, "over the fox", "jumps over")),
    "regenerated": (chat(FIRST), chat(FIRST)),
    "the last message edited": (chat(FIRST), chat("the quick brown dog")),
    "an edit in the middle": (
        chat(FIRST, "the dog", "over the lazy", "brown", "quick"),
        chat(FIRST, "the dog", "under the lazy", "brown", "quick"),
    ),
    "a shorter prompt": (chat(LONG), chat(LONG[:100])),
    "a shorter chat": (chat(FIRST, "the dog", "over the lazy"), chat(FIRST)),
    "nothing in common but the role": (chat("the dog"), chat("quick")),
}


@pytest.mark.parametrize("name", SECOND_CHATS)
def test_only_what_differs_is_computed(toy: Toy, name: str) -> None:
    before, after = SECOND_CHATS[name]
    first, second, fresh = toy.ask(
        {"messages": before, "fields": GREEDY},
        {"messages": after, "fields": GREEDY},
        {"messages": after, "fields": GREEDY, "forget": True},
    )
    first_prompt, second_prompt = toy.run("encode", chats=[before, after])
    in_cache = [*first_prompt, *first["tokens"]][:-1]  # the last token was never fed
    cached = min(shared(in_cache, second_prompt), len(second_prompt) - 1)
    assert first["usage"]["cached_tokens"] == 0
    assert first["computed"] == len(in_cache)
    assert second["usage"]["prompt_tokens"] == len(second_prompt)
    assert second["usage"]["cached_tokens"] == cached
    assert second["computed"] == len(second_prompt) - cached + 5
    assert second["tokens"] == fresh["tokens"]
    assert second["cache"] == fresh["cache"] == [*second_prompt, *second["tokens"][:-1]]
    assert fresh["usage"]["cached_tokens"] == 0


def test_the_same_prompt_computes_its_last_token_alone(toy: Toy) -> None:
    fields = {"temperature": 0, "max_tokens": 1}
    first, second = toy.ask(
        {"messages": chat(LONG), "fields": fields}, {"messages": chat(LONG), "fields": fields}
    )
    assert first["computed"] == first["usage"]["prompt_tokens"]
    assert second["computed"] == 1
    assert second["tokens"] == first["tokens"]


def test_progress_is_told_of_more_than_one_token(native_toy: Toy) -> None:
    """One token is a step of decoding, of which there are many: nobody waits for it."""
    logprobs = {**GREEDY, "logprobs": True}  # on the host, which computes token by token
    two, one, stepped = native_toy.ask(
        {"prompt": [5, 6], "fields": GREEDY},
        {"prompt": [5, 6], "fields": GREEDY},
        {"prompt": [5, 7, 8], "fields": logprobs},
    )
    assert two["progress"] == [[2, 2]]
    assert one["progress"] == []
    assert stepped["progress"] == [[3, 3]]


def test_prefill_does_not_grow_with_history(toy: Toy) -> None:
    """Ten turns with real answers: each computes its own question and answer, no more."""
    messages: list[dict[str, str]] = []
    prefilled: list[int] = []
    prompts: list[int] = []
    for _ in range(10):
        messages = [*messages, user(FIRST)]
        (answer,) = toy.run(
            "ask", steps=[{"messages": messages, "fields": GREEDY}], keep_cache=bool(prompts)
        )
        usage = answer["usage"]
        prefilled.append(usage["prompt_tokens"] - usage["cached_tokens"])
        prompts.append(usage["prompt_tokens"])
        messages = [*messages, assistant(answer["text"])]
    assert prompts[-1] > 5 * prompts[0]
    # A turn's answer comes back as text, whose tokens may be others: at most as many characters.
    most = prompts[0] + 2 + max(len(message["content"].encode()) for message in messages[1::2])
    assert max(prefilled) <= most
    assert max(prefilled[5:]) <= max(prefilled[:5]) + 6


def test_chunk_sizes_do_not_show(toy: Toy) -> None:
    answers = toy.ask(
        *(
            {"messages": chat(LONG), "fields": GREEDY, "chunk": chunk, "forget": True}
            for chunk in (512, 16, 1, 33)
        )
    )
    assert [answer["tokens"] for answer in answers] == [answers[0]["tokens"]] * 4
    total = answers[0]["usage"]["prompt_tokens"]
    assert [len(answer["progress"]) for answer in answers[:2]] == [1, -(-total // 16)]
    assert answers[1]["progress"] == [
        [min(done, total), total] for done in range(16, total + 16, 16)
    ]


def test_generated_logits_are_a_fresh_prefills(toy: Toy) -> None:
    """Decoding token by token gives what one prefill of all of them gives."""
    prompt = list(range(10, 60))
    fields = {"temperature": 0, "max_tokens": 8, "logprobs": True, "top_logprobs": 5}
    (answer,) = toy.ask({"prompt": prompt, "fields": {**fields, "ignore_eos": True}, "chunk": 16})
    texts = [[*prompt, *answer["tokens"][:count]] for count in range(8)]
    for row, entry in zip(toy.run("logits", prompts=texts), answer["logprobs"], strict=True):
        wanted = log_softmax(row)
        assert entry["token"] == int(row.argmax())
        assert entry["logprob"] == pytest.approx(wanted[entry["token"]], abs=1e-4)
        tops = [token for token, _ in entry["top"]]
        assert len(tops) == 5
        assert tops[0] == entry["token"]
        np.testing.assert_allclose([value for _, value in entry["top"]], wanted[tops], atol=1e-4)
        assert min(wanted[tops]) >= np.sort(wanted)[-5] - 1e-4


def log_softmax(logits: np.ndarray) -> Any:
    shifted = logits.astype(np.float64) - logits.max()
    return shifted - np.log(np.exp(shifted).sum())
