"""Graphs whose shapes change from call to call, on the CPU."""

import pytest

from tests.dynamic_shape.test_suite import (  # noqa: F401  (tests)
    test_c_buffers_keep_their_identity,
    test_d_static_graph_repeats_its_bytes_and_does_no_resize_work,
    test_equals_torch,
    test_n_chunked_prefill_equals_one_prefill,
)

pytestmark = pytest.mark.torch
