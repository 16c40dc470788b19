"""A map of texts: places by the model's embeddings, the same each time, whatever the texts are."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from py_runtime.base.cancel import CancelToken
from py_runtime.glass.layout import STEPS, principal
from py_runtime.glass.views.map import MAX_TEXTS, MAX_TOKENS
from tests.runners import CpuRunner, wait

pytestmark = pytest.mark.torch

CASES = "tests.glass.map_cases"
# Words that a toy of random weights tells apart: what is made of the same ones is alike.
LETTERS = ["aaa bbb aaa bbb", "bbb aaa bbb aaa", "aaa aaa bbb bbb", "bbb bbb aaa", "aaa bbb bbb"]
DIGITS = ["123 456 123 456", "456 123 456 123", "123 123 456 456", "456 456 123", "123 456 456"]
BLANK = ["", "  \n\t", *LETTERS, "", *DIGITS, LETTERS[0]]
LONG = ["word " * (MAX_TOKENS + 90), "word"]
WRONG: list[Any] = [[], ["", " "], "a text", ["a", 5], ["half \ud800"], ["a"] * (MAX_TEXTS + 1)]


@pytest.fixture(scope="module")
def found(cpu: CpuRunner, toy_model: Path) -> Any:
    lists = [LETTERS + DIGITS, BLANK, LONG, ["alone"], ["one", "two"]]
    return cpu.run(CASES, "maps", where=str(toy_model), lists=lists)


def places(of: Any) -> list[np.ndarray]:
    return [of["map"]["principal"], of["map"]["neighbours"]]


def test_two_kinds_of_texts_stay_apart(found: Any) -> None:
    for points in places(found[0]):
        middles = points[:5].mean(axis=0), points[5:].mean(axis=0)
        nearest = [
            int(np.argmin([np.linalg.norm(point - middle) for middle in middles]))
            for point in points
        ]
        assert nearest == [0] * 5 + [1] * 5
    assert set(found[0]["map"]["groups"][:5]).isdisjoint(found[0]["map"]["groups"][5:])


def test_a_map_is_the_same_each_time(found: Any) -> None:
    for each in found:
        for name in ("principal", "neighbours", "groups"):
            np.testing.assert_array_equal(each["map"][name], each["again"][name])


def test_equal_texts_share_a_place_and_blank_ones_have_none(found: Any) -> None:
    of = found[1]
    assert of["map"]["at"] == [2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13]
    for points in places(of):
        np.testing.assert_array_equal(points[0], points[-1])
        assert np.linalg.norm(points[0] - points[1]) > 0.01


def test_of_a_long_text_the_first_tokens_count(found: Any) -> None:
    assert found[2]["map"]["is_cut"].tolist() == [1, 0]
    *_, (done, total) = found[2]["steps"]
    assert done == total <= MAX_TOKENS + 20 + STEPS


def test_one_text_and_two(found: Any) -> None:
    one, two = found[3:]
    for points in places(one):
        np.testing.assert_array_equal(points, [[0, 0]])
    assert one["map"]["shares"] == [0, 0]
    for points in places(two):
        np.testing.assert_allclose(points[0], -points[1], atol=1e-5)
        assert np.linalg.norm(points[0]) > 0.01
    assert two["map"]["shares"][0] == pytest.approx(1)


def test_all_places_are_numbers_and_progress_reaches_its_end(found: Any) -> None:
    for each in found:
        assert all(np.isfinite(points).all() for points in places(each))
        done = [step for step, _ in each["steps"]]
        assert done == sorted(done)
        assert done[-1] == each["steps"][-1][1]


@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_places_are_those_of_the_embeddings(cpu: CpuRunner, toy_model: Path, pooling: str) -> None:
    texts = [*LETTERS, *DIGITS]
    of = cpu.run(CASES, "embeddings", where=str(toy_model), texts=texts, pooling=pooling)
    points, shares = wait(principal(of["vectors"], 2, CancelToken()))
    np.testing.assert_allclose(of["map"]["principal"], points, atol=1e-5)
    np.testing.assert_allclose(of["map"]["shares"], shares, atol=1e-6)


def test_wrong_lists_are_named(cpu: CpuRunner, toy_model: Path) -> None:
    answers = cpu.run(CASES, "maps", where=str(toy_model), lists=WRONG)
    assert {each["code"] for each in answers} == {"invalid_request"}
    assert all("texts" in each["message"] for each in answers)


def test_it_waits_until_an_answer_is_written(cpu: CpuRunner, toy_model: Path) -> None:
    of = cpu.run(CASES, "beside_an_answer", where=str(toy_model), texts=["one", "two"])
    last_written = len(of["events"]) - 1 - of["events"][::-1].index("written")
    assert "read" not in of["events"][:last_written]
    assert of["events"].count("read") == 2 + 1
    assert of["is_same"]
    assert of["is_left"], "the session holds what it held"


@pytest.mark.parametrize("after", [2, 30])
def test_it_can_be_stopped(cpu: CpuRunner, toy_model: Path, after: int) -> None:
    """Stop it while texts are read, and while they are laid out."""
    of = cpu.run(CASES, "stopped", where=str(toy_model), texts=LETTERS + DIGITS, after=after)
    assert of == {"code": "aborted", "steps": after, "is_free": True}
