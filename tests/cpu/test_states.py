"""States of convolutions and scans on the CPU: going on, going back and departing never shows.

Some rows are thorough, as they are where they come from.
"""

import pytest

from tests.generation.test_states import (  # noqa: F401  (tests and what they ask for)
    asked,
    test_a_chat_that_goes_on,
    test_a_prompt_that_departs_is_computed_anew,
    test_another_answer_to_the_same_prompt,
    test_stopped_on_the_way,
    test_the_end_of_a_prompt_may_differ,
)

pytestmark = pytest.mark.torch
