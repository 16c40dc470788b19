"""Caches that are rings, on the CPU: going on and going back never shows."""

import pytest

from tests.generation.test_rings import (  # noqa: F401  (tests and what they ask for)
    asked,
    test_a_chat_that_goes_on,
    test_going_back_as_far_as_the_rings_reach,
    test_going_back_further_is_computed_anew,
    test_stopped_on_the_way,
)

pytestmark = pytest.mark.torch
