"""The toy model where it can be loaded: natively from its folder, in a page from its site."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.runners import Runner
from tests.toy_model import NAME


@dataclass(frozen=True)
class Toy:
    runner: Runner
    where: str


@pytest.fixture(params=["native", pytest.param("page", marks=pytest.mark.browser)])
def toy(request: pytest.FixtureRequest, toy_model: Path) -> Toy:
    """The test runs twice: natively and in the page."""
    if request.param == "native":
        return Toy(request.getfixturevalue("native"), str(toy_model))
    address = request.getfixturevalue("toy_site_url")
    return Toy(request.getfixturevalue("toy_page"), f"{address}models/{NAME}/")
