"""Answers on the CPU: sessions that go on, go back and are stopped, and answers in a given form."""

from pathlib import Path

import pytest

from tests.generation.conftest import Toy
from tests.generation.test_context import (  # noqa: F401  (tests)
    test_an_answer_that_reaches_the_end_of_the_context,
    test_an_error_leaves_the_cache_alone,
    test_the_last_place_of_the_context,
    test_the_oldest_turns_go,
)
from tests.generation.test_options import (  # noqa: F401  (tests)
    test_a_users_own_sampler,
    test_an_end_token_ends_the_answer,
    test_hardly_any_temperature_is_greedy,
    test_json_always_parses,
    test_json_follows_its_schema,
    test_logit_bias_forces_and_forbids,
    test_more_than_the_vocabulary_is_all_of_it,
    test_penalties_see_the_answer,
    test_stop_strings_never_leak,
    test_the_repetition_penalty_sees_the_prompt_and_the_others_do_not,
    test_the_same_seed_gives_the_same_text,
    test_the_work_of_a_token,
)
from tests.generation.test_prefix import (  # noqa: F401  (tests)
    test_chunk_sizes_do_not_show,
    test_generated_logits_are_a_fresh_prefills,
    test_only_what_differs_is_computed,
    test_prefill_does_not_grow_with_history,
    test_progress_is_told_of_more_than_one_token,
    test_the_same_prompt_computes_its_last_token_alone,
)
from tests.generation.test_stopping import (  # noqa: F401  (tests)
    test_a_user_may_leave_the_loop,
    test_answers_take_turns,
    test_stopped_before_it_began,
    test_stopped_while_another_answers,
    test_stopped_while_it_answers,
    test_stopped_while_the_prompt_is_read,
)
from tests.runners import CpuRunner

pytestmark = pytest.mark.torch


@pytest.fixture
def toy(cpu: CpuRunner, toy_model: Path) -> Toy:
    return Toy(cpu, str(toy_model))


@pytest.fixture
def native_toy(toy: Toy) -> Toy:
    return toy
