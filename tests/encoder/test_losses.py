"""A lost device under a text encoder: another one is taken, and the caller hears nothing."""

import numpy as np
import pytest

from tests.encoder.gguf_files import small_encoder
from tests.runners import NativeRunner

CASES = "tests.encoder.in_runtime"
TEXTS = [[2, 50, 3], [2, 7, 8, 9, 3]]


@pytest.mark.thorough  # compiles all kernels anew
def test_the_same_vectors_after_a_loss(native: NativeRunner) -> None:
    data = np.frombuffer(small_encoder(), np.uint8)
    found = native.run(CASES, "lose_the_device", files=data, texts=TEXTS)
    np.testing.assert_allclose(found["after"], found["before"], atol=1e-6)
    assert found["left"] == 0, "unloading gives all memory back"
