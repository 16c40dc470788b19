"""The toy model, asked natively and in a page that keeps it loaded."""

from pathlib import Path
from typing import Any

import pytest

from tests.runners import Runner
from tests.toy_model import NAME

CASES = "tests.generation.in_runtime"


class Toy:
    def __init__(self, runner: Runner, where: str) -> None:
        self.runner = runner
        self.where = where

    def ask(self, *steps: dict[str, Any]) -> list[dict[str, Any]]:
        """What came of each step, one after the other in one session; see in_runtime.py."""
        answers: list[dict[str, Any]] = self.run("ask", steps=list(steps))
        return answers

    def run(self, case: str, **arguments: Any) -> Any:
        return self.runner.run(CASES, case, where=self.where, **arguments)


@pytest.fixture(params=["native", pytest.param("page", marks=pytest.mark.browser)])
def toy(request: pytest.FixtureRequest, toy_model: Path) -> Toy:
    """The test runs twice: natively and in the page."""
    if request.param == "native":
        return request.getfixturevalue("native_toy")
    address = request.getfixturevalue("toy_site_url")
    return Toy(request.getfixturevalue("toy_page"), f"{address}models/{NAME}/")


@pytest.fixture
def native_toy(request: pytest.FixtureRequest, toy_model: Path) -> Toy:
    """For what is the same in the page: plain Python between the request and the session."""
    return Toy(request.getfixturevalue("native"), str(toy_model))
