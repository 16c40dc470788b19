"""A tied output head shares the embedding's bytes on the GPU, in every kind of GGUF."""

import numpy as np
import pytest

from tests.runners import Runner
from tests.runtime.cases_linear import blocks


@pytest.mark.parametrize("kind", ["q4_0", "q4_1", "q8_0"])
def test_embedding_and_head_share_one_buffer(runner: Runner, kind: str) -> None:
    weights = blocks(kind, 40, 64, np.random.default_rng(5))
    data = weights.constants
    result = runner.run("tests.runtime.tied_head", "tied_head", kind=kind, columns=64, **data)
    assert result["one weight buffer"]
    assert result["one scale buffer"]
    assert result["constant bytes"] == data["weight"].nbytes + data["scales"].nbytes
    values = weights.values.numpy()
    np.testing.assert_allclose(result["row"], values[[3]], rtol=1e-6)
    np.testing.assert_allclose(result["logits"], values[[3]] @ values.T, rtol=1e-4, atol=1e-6)
