"""Every field of a request does what its name says, and a wrong one is named."""

import json
from typing import Any

import pytest

from py_runtime.base.defaults import DEFAULTS
from py_runtime.generation.options import parse_options
from py_runtime.sampling import SamplingSettings
from py_runtime.sampling.settings import NUMBERS
from tests.generation.conftest import Toy

PROMPT = list(range(10, 40))
GREEDY = {"temperature": 0, "max_tokens": 8, "ignore_eos": True}
LETTERS = list(range(68, 94))  # 'b' to '{', each a token of its own
END = 2


def step(fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"prompt": PROMPT, "fields": fields, **more}


SILENT = [{}, {"seed": 7, "max_tokens": 3}, {"logit_bias": {"5": 2}}, {"temperature": None}]


@pytest.mark.parametrize("fields", SILENT)
def test_who_says_nothing_of_sampling_gets_the_defaults(fields: dict[str, Any]) -> None:
    sampling = parse_options(fields, 320).sampling
    assert {name: getattr(sampling, name) for name in DEFAULTS} == DEFAULTS
    assert sampling.seed == fields.get("seed")


@pytest.mark.parametrize("name", [*NUMBERS, "top_k"])
def test_who_names_a_setting_gets_it_and_no_other(name: str) -> None:
    sampling = parse_options({name: 1, "seed": 7}, 320).sampling
    named: dict[str, Any] = {name: 1, "seed": 7}
    assert sampling == SamplingSettings(**named)


def test_the_same_seed_gives_the_same_text(toy: Toy) -> None:
    fields = {"max_tokens": 16, "ignore_eos": True}
    first, again, other, unseeded = toy.ask(
        step({**fields, "seed": 7}),
        step({**fields, "seed": 7}),
        step({**fields, "seed": 8}),
        step(fields),
    )
    assert first["tokens"] == again["tokens"]
    assert len({tuple(a["tokens"]) for a in (first, other, unseeded)}) == 3


@pytest.mark.parametrize("fields", [{"top_k": 2**32}, {"top_k": 10**30, "top_p": 0.9}])
def test_more_than_the_vocabulary_is_all_of_it(native_toy: Toy, fields: dict[str, Any]) -> None:
    """A number that no word of the GPU holds, too."""
    common = {"max_tokens": 4, "ignore_eos": True, "seed": 7, "temperature": 1}
    without = {name: value for name, value in fields.items() if name != "top_k"}
    every, all_of_it = native_toy.ask(step({**common, **without}), step({**common, **fields}))
    assert every["tokens"] == all_of_it["tokens"]


@pytest.mark.parametrize("temperature", [1e-20, 1e-40, 5e-324])
def test_hardly_any_temperature_is_greedy(native_toy: Toy, temperature: float) -> None:
    greedy, cold = native_toy.ask(step(GREEDY), step({**GREEDY, "temperature": temperature}))
    assert greedy["tokens"] == cold["tokens"]


def test_the_work_of_a_token(native_toy: Toy) -> None:
    """The host sends a number with a submit and gets logits back; the first token is left out."""
    first, again = native_toy.ask(*[step({**GREEDY, "logprobs": True})] * 2)
    work, vocabulary = first["usage"]["work"], 320
    assert work["submits"] == 1
    assert work["bytes_read"] == 4 * vocabulary
    assert work["python_ms"] is None
    repeated = again["usage"]["work"]
    assert repeated["dispatches"] == work["dispatches"] >= 1
    assert 4 <= repeated["bytes_written"] <= work["bytes_written"]  # whose shape was new


def test_max_tokens_and_its_newer_name(native_toy: Toy) -> None:
    old, new, whole = native_toy.ask(
        step({"temperature": 0, "max_tokens": 5, "ignore_eos": True}),
        step({"temperature": 0, "max_completion_tokens": 5, "ignore_eos": True}),
        step({"temperature": 0, "ignore_eos": True}, prompt=[7] * 500),
    )
    assert len(old["tokens"]) == len(new["tokens"]) == 5
    assert len(whole["tokens"]) == 12  # up to the end of the context
    assert [a["finish_reason"] for a in (old, new, whole)] == ["length"] * 3
    assert old["usage"]["completion_tokens"] == 5


def test_an_end_token_ends_the_answer(native_toy: Toy) -> None:
    ended, going_on = native_toy.ask(
        step({"max_tokens": 4, "logit_bias": {END: 100}}),
        step({"max_tokens": 4, "logit_bias": {END: 100}, "ignore_eos": True}),
    )
    assert (ended["text"], ended["tokens"]) == ("", [END])
    assert ended["finish_reason"] == "stop"
    assert (going_on["text"], going_on["tokens"]) == ("", [END] * 4)
    assert going_on["finish_reason"] == "length"


def test_logit_bias_forces_and_forbids(native_toy: Toy) -> None:
    (plain,) = native_toy.ask(step(GREEDY))
    likely = {str(token): -100 for token in plain["tokens"]}
    forced, forbidden = native_toy.ask(
        step({**GREEDY, "logit_bias": {"70": 100}}), step({**GREEDY, "logit_bias": likely})
    )
    assert forced["tokens"] == [70] * 8
    assert not set(forbidden["tokens"]) & set(plain["tokens"])


@pytest.mark.parametrize(
    "penalty", [{"repetition_penalty": 50}, {"frequency_penalty": 2}, {"presence_penalty": 2}]
)
def test_penalties_see_the_answer(native_toy: Toy, penalty: dict[str, float]) -> None:
    second, bias = runner_up(native_toy, PROMPT)
    fields = {"temperature": 0, "max_tokens": 2, "logit_bias": bias}
    plain, penalised = native_toy.ask(step(fields), step({**fields, **penalty}))
    assert plain["tokens"] == [70, 70]
    assert penalised["tokens"] == [70, second]


def runner_up(toy: Toy, prompt: list[int]) -> tuple[int, dict[str, float]]:
    """Return a token that is a close second, and biases that make 70 the likeliest twice.

    It is closer than any penalty is large.
    """
    first, then = toy.run("logits", prompts=[prompt, [*prompt, 70]])
    leads = {token: (first[70] - first[token], then[70] - then[token]) for token in LETTERS}
    del leads[70]
    second = min(leads, key=lambda token: abs(leads[token][0] - leads[token][1]))
    return second, {"70": 50, str(second): 50 + float(min(leads[second])) - 0.25}


def test_the_repetition_penalty_sees_the_prompt_and_the_others_do_not(native_toy: Toy) -> None:
    prompt = [70] * 4
    second, bias = runner_up(native_toy, prompt)
    fields = {"temperature": 0, "max_tokens": 1, "logit_bias": bias}
    repetition, frequency, presence = native_toy.ask(
        *(
            step({**fields, **penalty}, prompt=prompt)
            for penalty in (
                {"repetition_penalty": 50},
                {"frequency_penalty": 2},
                {"presence_penalty": 2},
            )
        )
    )
    assert repetition["tokens"] == [second]
    assert frequency["tokens"] == presence["tokens"] == [70]


def test_a_users_own_sampler(toy: Toy) -> None:
    answer = toy.run("with_sampler", allowed=LETTERS, fields={"max_tokens": 6})
    assert len(answer["tokens"]) == 6
    assert set(answer["tokens"]) <= set(LETTERS)
    assert answer["seen"] == [[5, 6, 7, *answer["tokens"][:count]] for count in range(6)]


@pytest.mark.parametrize("given", [320, -1, 1.0, None, "a"])
def test_a_sampler_that_gives_no_token(native_toy: Toy, given: Any) -> None:
    error = native_toy.run("bad_sampler", given=given, fields={})["error"]
    assert (error["code"], error["param"]) == ("invalid_request", "sampler")
    assert repr(given) in error["message"]


def test_a_sampler_within_a_format(native_toy: Toy) -> None:
    error = native_toy.run(
        "bad_sampler", given=70, fields={"response_format": {"type": "json_object"}}
    )["error"]
    assert "response_format forbids" in error["message"]


# Stop strings -----------------------------------------------------------------------------------


def test_stop_strings_never_leak(toy: Toy) -> None:
    """Every place of every answer is a stop once; also with logprobs, whose tokens are text too."""
    letters = {**GREEDY, "max_tokens": 24, "logit_bias": {str(token): 60 for token in LETTERS}}
    sampled = {**letters, "temperature": 1.5, "seed": 3, "logprobs": True}
    (whole,) = toy.ask(step(sampled))
    text = whole["text"]
    assert len(text) == 24  # one token a character
    cuts = [(at, length) for at in range(0, 20, 3) for length in (1, 2, 5)]
    stops = [text[at : at + length] for at, length in cuts]
    for stop, answer in zip(
        stops, toy.ask(*(step({**sampled, "stop": s}) for s in stops)), strict=True
    ):
        shown = text[: text.index(stop)]
        assert answer["text"] == shown
        assert answer["finish_reason"] == "stop"
        assert answer["tokens"] == whole["tokens"][: len(shown)]
        assert [entry["token"] for entry in answer["logprobs"]] == answer["tokens"]
        assert answer["usage"]["completion_tokens"] == len(shown) + len(stop)


def test_what_might_have_become_a_stop_is_shown_in_the_end(native_toy: Toy) -> None:
    letters = {**GREEDY, "logit_bias": {"70": 100}}
    plain, held, stopped = native_toy.ask(
        step(letters),
        step({**letters, "stop": "dddX"}),
        step({**letters, "stop": ["dddX", "dddd"]}),
    )
    assert plain["text"] == "dddddddd"
    assert held["text"] == plain["text"]
    assert held["tokens"] == plain["tokens"]
    assert held["finish_reason"] == "length"
    assert held["texts"][-1].startswith("ddd")  # three were held back until the end
    assert (stopped["text"], stopped["tokens"]) == ("", [])
    assert stopped["finish_reason"] == "stop"
    assert stopped["usage"]["completion_tokens"] == 4


def test_a_stopped_answer_keeps_what_was_held_back(native_toy: Toy) -> None:
    fields = {**GREEDY, "logit_bias": {"70": 100}, "stop": "dddX"}
    (answer,) = native_toy.ask(step(fields, cancel_at_piece=1))
    assert answer["finish_reason"] == "abort"
    assert answer["text"] == "d" * answer["usage"]["completion_tokens"]
    assert len(answer["tokens"]) == answer["usage"]["completion_tokens"]


# Formats ----------------------------------------------------------------------------------------

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("max_tokens", [8, 40])
def test_json_always_parses(toy: Toy, max_tokens: int) -> None:
    """The toy would never write JSON by itself; what it writes is cut short in time."""
    fields = {"response_format": {"type": "json_object"}, "max_tokens": max_tokens}
    answers = toy.ask(*(step({**fields, "seed": seed}) for seed in range(4)))
    for answer in answers:
        assert isinstance(json.loads(answer["text"]), dict), answer["text"]
        assert len(answer["tokens"]) <= max_tokens + 1  # an end token may follow


@pytest.mark.parametrize("max_tokens", [30, 60])
def test_json_follows_its_schema(toy: Toy, max_tokens: int) -> None:
    described = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}
    fields = {"response_format": described, "max_tokens": max_tokens}
    for answer in toy.ask(*(step({**fields, "seed": seed}) for seed in range(3))):
        person = json.loads(answer["text"])
        assert person.keys() == {"name", "age"}
        assert isinstance(person["name"], str)
        assert isinstance(person["age"], int)
        assert answer["finish_reason"] == "stop"


def test_a_format_that_cannot_be_had(native_toy: Toy) -> None:
    described = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}
    short, unknown, wrong = native_toy.ask(
        step({"response_format": described, "max_tokens": 3}),
        step({"response_format": {"type": "xml"}}),
        step({"response_format": "json"}),
    )
    assert short["error"]["param"] == "max_tokens"
    assert unknown["error"]["param"] == wrong["error"]["param"] == "response_format"


def test_text_is_no_format(native_toy: Toy) -> None:
    plain, text = native_toy.ask(
        step(GREEDY), step({**GREEDY, "response_format": {"type": "text"}})
    )
    assert plain["tokens"] == text["tokens"]


# What is refused --------------------------------------------------------------------------------

WRONG: list[tuple[str, Any]] = [
    ("temperature", 2.5),
    ("temperature", "warm"),
    ("temperature", True),
    ("top_p", 1.5),
    ("top_k", -1),
    ("top_k", 1.5),
    ("min_p", -0.1),
    ("repetition_penalty", 0),
    ("frequency_penalty", 3),
    ("presence_penalty", -3),
    ("seed", "seven"),
    ("logit_bias", {"x": 1}),
    ("logit_bias", {"320": 1}),
    ("logit_bias", {"1": 101}),
    ("logit_bias", [1]),
    ("max_tokens", 0),
    ("max_tokens", 2.5),
    ("max_tokens", True),
    ("max_completion_tokens", -1),
    ("stop", ""),
    ("stop", ["a", ""]),
    ("stop", 5),
    ("stop", ["x"] * 17),
    ("logprobs", 5),
    ("top_logprobs", 2),  # without logprobs
    ("n", 2),
    ("n", "1"),
    ("ignore_eos", "yes"),
    ("context_overflow", "crash"),
    ("response_format", {"type": "yaml"}),
    ("sampler", "greedy"),
    ("tools", []),
    ("tools", "weather"),
    ("tools", [{"type": "function"}]),
    ("tools", [{"function": {"name": "weather"}}]),
    ("tools", [{"type": "function", "function": {"name": "two words"}}]),
    ("tools", [{"type": "function", "function": {"name": "f", "parameters": []}}]),
    ("tools", [{"type": "function", "function": {"name": "f"}}] * 2),
    ("tool_choice", "required"),  # without tools
    ("tool_choice", 1),
    ("parallel_tool_calls", "no"),
    ("reasoning_format", "xml"),
    ("enable_thinking", 1),
    ("reasoning_effort", 3),
    ("chat_template_kwargs", []),
    ("chat_template_kwargs", {"messages": []}),
    ("maxTokens", 5),
]


CHAT_ONLY = ("tool", "parallel", "reasoning", "enable", "chat_template")


@pytest.mark.parametrize(("name", "value"), WRONG, ids=lambda value: str(value)[:20])
def test_a_wrong_field_is_named(native_toy: Toy, name: str, value: Any) -> None:
    is_chat = name.startswith(CHAT_ONLY)
    asked = {"messages": [{"role": "user", "content": "hi"}]} if is_chat else {}
    (answer,) = native_toy.ask({**(asked or step({})), "fields": {name: value}})
    assert answer["error"]["code"] == "invalid_request"
    assert answer["error"]["param"] == name
    assert name in answer["error"]["message"]


@pytest.mark.parametrize("top", [-1, 21, True, "3"])
def test_too_many_top_logprobs(native_toy: Toy, top: Any) -> None:
    (answer,) = native_toy.ask(step({"logprobs": True, "top_logprobs": top}))
    assert answer["error"]["param"] == "top_logprobs"


def test_none_is_the_default(native_toy: Toy) -> None:
    names = {name for name, _ in WRONG if not name.startswith(CHAT_ONLY)}
    names -= {"maxTokens", "temperature", "max_tokens"}
    plain, given = native_toy.ask(step(GREEDY), step({**dict.fromkeys(names), **GREEDY}))
    assert given["tokens"] == plain["tokens"]
