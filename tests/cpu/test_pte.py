"""Files of ExecuTorch, on the CPU: whole decoders, and what lies between delegates."""

import pytest

from tests.pte.test_chat import (  # noqa: F401  (tests and what they ask for)
    folder,
    model,
    test_a_second_turn_reuses_the_first,
    test_it_answers_and_stops_where_it_should,
    test_many_steps_run_in_one_submit,
    test_whole_logits_give_their_last_row_alone,
)
from tests.pte.test_files import (  # noqa: F401  (tests)
    test_a_decoder_starts_anew_in_a_second_module,
    test_equals_torch_on_one_loaded_module,
    test_int64_that_does_not_fit_is_refused,
    test_kernels_around_delegates_are_computed,
)
from tests.pte.test_host_kernels import (  # noqa: F401  (tests)
    test_in_both_runtimes,
    test_live_dims_on_one_module,
)
from tests.pte.test_kernels import (  # noqa: F401  (tests)
    test_a_kernel_stands_between_delegates,
    test_a_number_becomes_a_tensor_that_a_delegate_takes,
    test_an_integer_that_callers_pass,
    test_each_gives_what_torch_gives,
    test_infinity_and_integers,
)
from tests.pte.test_methods import (  # noqa: F401  (tests)
    test_64_bits_on_the_host,
    test_an_input_that_the_model_changes,
    test_calls_leave_nothing_behind,
    test_delegates_run_one_after_the_other,
    test_dims_that_vary,
    test_several_methods,
)
from tests.pte.test_reader import (  # noqa: F401  (tests)
    test_a_load_that_fails_leaves_nothing_on_the_gpu,
    test_a_method_gives_numbers_and_its_own_inputs_too,
    test_only_the_methods_that_are_wanted_are_loaded,
)
from tests.pte.test_traps import (  # noqa: F401  (tests)
    test_a_delegate_is_called_in_its_own_order,
    test_a_symint_is_an_input,
    test_bools_are_bytes_in_the_file_even_under_a_key_that_others_have,
    test_caches_of_equal_content_have_a_buffer_each,
    test_constants_come_from_wherever_they_lie,
    test_rows_of_4_bit_weights_are_padded_to_8,
    test_the_seq_len_of_attention_is_not_believed,
)

pytestmark = pytest.mark.torch
