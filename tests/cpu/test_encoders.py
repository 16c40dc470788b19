"""Text encoders on the CPU: transformers' vectors, of checkpoints and of GGUF files."""

import pytest

from tests.encoder.test_vectors import (  # noqa: F401  (tests)
    test_a_gguf_file_gives_the_same,
    test_texts_are_encoded_together_with_little_padding,
    test_vectors_are_those_of_transformers,
)

pytestmark = pytest.mark.torch
