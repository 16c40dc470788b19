"""The imitation, one for each file of tests."""

from collections.abc import Iterator

import pytest

from tests.hub.imitation import Imitation, imitated


@pytest.fixture(scope="module")
def hub() -> Iterator[Imitation]:
    with imitated() as imitation:
        yield imitation
