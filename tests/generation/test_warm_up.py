"""A warm-up beside the first answer: it is in nobody's way, and leaves no trace."""

from typing import Any

import pytest

from tests.generation.conftest import Toy


def run(toy: Toy, case: str, **arguments: Any) -> Any:
    return toy.runner.run("tests.generation.warm_ups", case, where=toy.where, **arguments)


def test_it_leaves_an_empty_session_that_is_ready(native_toy: Toy) -> None:
    outcome = run(native_toy, "warm_up", ask_first=False)
    assert outcome["steps"] == ["_warm_template", "_warm_prefill", "_warm_decode"]
    assert outcome["session"] == {"tokens": [], "computed_tokens": 0, "waited_s": 0}
    assert outcome["pipelines_made_by_the_answer"] == 0
    check_answer(outcome["answer"])


def test_who_asks_meanwhile_waits_for_pipelines_alone(native_toy: Toy) -> None:
    outcome = run(native_toy, "warm_up", ask_first=True)
    assert outcome["steps"] == []
    assert outcome["pipelines_made_by_the_answer"] == 0
    check_answer(outcome["answer"])


def check_answer(answer: dict[str, Any]) -> None:
    assert answer["tokens"] == answer["undisturbed"]
    assert len(answer["tokens"]) == 6
    assert answer["usage"]["cached_tokens"] == 0


def test_it_can_be_stopped(native_toy: Toy) -> None:
    outcome = run(native_toy, "stop_the_warm_up")
    assert outcome == {"code": "aborted", "tokens": [], "buffers": 0}


@pytest.mark.thorough  # compiles all kernels anew
def test_a_device_lost_meanwhile_is_replaced(native_toy: Toy) -> None:
    outcome = run(native_toy, "lose_the_device_while_warming_up")
    assert outcome["kinds"] == ["device_lost", "recovered"]
    assert outcome["tokens"] == []
    assert outcome["is_another"] is True


def test_pipelines_that_do_not_compile_fail_the_answer(native_toy: Toy) -> None:
    outcome = run(native_toy, "compile_in_vain")
    assert outcome["load"] == "broken on purpose"
    assert outcome["answers"] == ["broken on purpose"] * 2
    assert outcome["buffers"] == 0
