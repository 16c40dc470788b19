"""Messages: a code with its facts, and how they are worded in English."""

import pytest

from py_runtime.base.errors import InpageError, NoModelError, RequestError
from py_runtime.base.messages import ENGLISH, facts_of, message, worded
from py_runtime.base.sizes import duration


def test_a_message_holds_the_facts_that_its_code_has() -> None:
    said = message("smaller_model", name="Toy", gpu_bytes=2000)
    assert said == {"code": "smaller_model", "facts": {"name": "Toy", "gpu_bytes": 2000}}
    assert worded(said) == "Toy (2.0 kB)"
    with pytest.raises(KeyError):
        message("no such code")
    for facts in ({}, {"name": "Toy"}, {"name": "Toy", "gpu_bytes": 1, "more": 2}):
        with pytest.raises(ValueError, match="smaller_model has the facts"):
            message("smaller_model", **facts)


def test_facts_may_be_messages_and_lists() -> None:
    models = [message("smaller_model", name=name, gpu_bytes=1000) for name in "ab"]
    said = message("smaller_models", fault=message("no_model"), models=models)
    assert worded(said) == (
        "no model is loaded: load one first. Smaller models here: a (1.0 kB), b (1.0 kB)"
    )
    faults = [message("answer_differs", place=place) for place in (3, 4)]
    assert "at token 3; an answer" in worded(message("wrong_natively", faults=faults))


def test_several_messages_are_a_line() -> None:
    messages = [message("answer_tokens", tokens=count) for count in (1, 2)]
    assert worded(messages) == "1 token · 2 tokens"
    assert worded(messages, " ") == "1 token 2 tokens"
    assert worded([]) == ""


@pytest.mark.parametrize("code", ENGLISH)
def test_codes_are_names_and_texts_are_clean(code: str) -> None:
    assert code.isidentifier()
    assert code == code.lower()
    assert ENGLISH[code].strip() == ENGLISH[code] != ""
    assert all(name.isidentifier() for name in facts_of(ENGLISH[code]))


def test_an_error_says_a_text_or_a_message() -> None:
    plain, known = InpageError("a text"), RequestError(message("no_model"), "model")
    assert (str(plain), plain.said or "none", plain.wording) == ("a text", "none", "a text")
    assert str(known) == str(NoModelError()) == "no model is loaded: load one first"
    assert known.param == "model"
    assert known.said is not None
    assert known.wording == dict(known.said) == {"code": "no_model", "facts": {}}


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        *((0, "1 s"), (1.4, "1 s"), (89.4, "89 s"), (90, "2 min"), (150, "2 min")),
        *((89 * 60, "89 min"), (90 * 60, "1.5 h"), (7200, "2.0 h")),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words
