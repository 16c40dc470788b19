"""A fixed number of inputs for each target; `make fuzz` goes on with others."""

import pytest

from tests.fuzz.driver import Tally, attempt, run
from tests.fuzz.targets import TARGETS

pytestmark = [
    pytest.mark.filterwarnings("ignore::SyntaxWarning"),
    pytest.mark.thorough,
]

SEED = 1  # the same for everyone: what fails here fails elsewhere


@pytest.mark.parametrize("name", TARGETS)
def test_whatever_it_gets_is_read_or_refused(name: str) -> None:
    target, tally = TARGETS[name], Tally()
    run(target, SEED, range(target.count), tally)
    refused = tally.outcomes.total() - tally.outcomes["read"]
    assert tally.outcomes["read"] > target.count // 50, "damage that nothing survives proves little"
    assert refused > target.count // 10, "nor does damage that nobody notices"


@pytest.mark.parametrize("name", TARGETS)
def test_sound_inputs_are_read(name: str) -> None:
    target = TARGETS[name]
    for data in target.corpus():
        assert attempt(target, data, "a sound input", counts=True)[0] == "read"
