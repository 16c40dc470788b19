"""The life of a graph on the CPU: resizing, uploads, memory, probes and profiles."""

import pytest

from tests.graph.test_graph import (  # noqa: F401  (tests and what they ask for)
    device,
    test_a_clone_of_state_is_no_alias,
    test_bad_input_is_named_and_leaves_the_graph_as_it_was,
    test_build_and_resize_agree_to_the_byte,
    test_constants_with_one_name_share_a_buffer,
    test_decode_steps_touch_only_what_reads_the_position,
    test_in_place_writes_happen_even_when_nothing_is_read,
    test_intermediates_share_memory_without_overlap,
    test_only_wanted_outputs_are_computed_and_read,
    test_shapes_that_come_again_cost_no_op_anything,
    test_stale_s_never_meets_a_new_position,
    test_sym_size_of_an_intermediate_is_this_calls,
    test_unloading_gives_everything_back,
    test_uploads_are_live_bytes_and_one_uniform_write,
    test_views_cost_nothing,
)
from tests.graph.test_probes import (  # noqa: F401  (tests)
    test_a_probed_run_costs_one_pass,
    test_intermediates_that_share_a_buffer_are_all_seen,
)
from tests.graph.test_profile import (  # noqa: F401  (tests)
    test_a_profile_counts_every_dispatch,
    test_a_profile_leaves_nothing_behind,
    test_what_an_output_does_not_need_is_not_timed,
)
from tests.graph.test_properties import (  # noqa: F401  (tests)
    test_any_chain_at_any_length_equals_torch,
    test_attention_wherever_a_chat_goes,
)
from tests.graph.test_quiet_decode import (  # noqa: F401  (tests)
    test_a_new_position_uploads_nothing_but_itself,
)

pytestmark = pytest.mark.torch
