"""Whole models on the CPU: torch's logits and tokens, every mixer, embeddings and verify."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.default_model import test_goldens as default
from tests.export import test_families as families
from tests.export.test_families import test_from_a_folder  # noqa: F401  (a test)
from tests.generation.in_runtime import the_model
from tests.gguf.test_mixes import test_torch_s_tokens as test_tokens_of_every_mix  # noqa: F401
from tests.gguf.test_models import test_torch_s_tokens  # noqa: F401  (a test)
from tests.model.test_embed import (  # noqa: F401  (tests)
    test_hidden_states_are_torchs,
    test_vectors_are_those_of_transformers,
)
from tests.model.test_verify import (  # noqa: F401  (tests and what they ask for)
    model,
    test_another_token_counts_where_torch_was_sure,
    test_it_can_be_cancelled_and_the_model_goes_on,
    test_no_numbers_are_a_difference,
    test_one_wrong_number_among_many_is_seen,
    test_sound_spoilt_and_mended,
)
from tests.runners import CpuRunner, PlacedToy
from tests.toy_model import TOKENS, greedy_of
