"""The toy model, asked natively and in a page that keeps it loaded."""

from pathlib import Path
from typing import Any

import pytest

from tests.runners import PlacedToy

CASES = "tests.generation.in_runtime"


class Toy(PlacedToy):
    def ask(self, *steps: dict[str, Any]) -> list[dict[str, Any]]:
        """Return what came of each step, one after the other in one session; see in_runtime.py."""
        answers: list[dict[str, Any]] = self.run("ask", steps=list(steps))
        return answers

    def run(self, case: str, **arguments: Any) -> Any:
        return self.runner.run(CASES, case, where=self.where, **arguments)


@pytest.fixture
def toy(toy: PlacedToy) -> Toy:
    """Run the test twice: natively and in the page."""
    return Toy(toy.runner, toy.where)


@pytest.fixture
def native_toy(request: pytest.FixtureRequest, toy_model: Path) -> Toy:
    """Run natively what is the same in the page: plain Python from the request to the session."""
    return Toy(request.getfixturevalue("native"), str(toy_model))
