"""Log probabilities, against torch's."""

import json

import numpy as np
import pytest
import torch

from py_runtime.app.jsonable import dumps
from py_runtime.sampling import NoFiniteLogitsError, logprobs

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("vocabulary", [7, 1000, 49_152])
@pytest.mark.parametrize("top", [0, 1, 5, 20])
def test_against_torch(vocabulary: int, top: int) -> None:
    logits = np.random.default_rng(top).normal(0, 8, vocabulary).astype(np.float32)
    logits.setflags(write=False)
    expected = torch.log_softmax(torch.tensor(logits, dtype=torch.float64), dim=0)
    best = torch.topk(expected, min(top, vocabulary))
    found = logprobs(logits, 3, top)
    assert found.token == 3
    assert found.logprob == pytest.approx(expected[3].item(), rel=1e-12)
    assert [token for token, _ in found.top] == best.indices.tolist()
    assert [value for _, value in found.top] == pytest.approx(best.values.tolist(), rel=1e-12)


def test_equal_ones_in_order_of_their_ids() -> None:
    logits = np.array([1.0, 2.0, 1.0, 2.0, 1.0], np.float32)
    assert [token for token, _ in logprobs(logits, 0, 4).top] == [1, 3, 0, 2]


def test_faulty_logits() -> None:
    """A number that JSON cannot express becomes OpenAI's number for the impossible."""
    logits = np.array([0.0, np.nan, np.inf, -np.inf, 0.0], np.float32)
    found = logprobs(logits, 1, 3)
    assert found.logprob == -9999.0
    assert [token for token, _ in found.top] == [0, 4, 1]
    assert [value for _, value in found.top] == pytest.approx([np.log(0.5), np.log(0.5), -9999.0])
    assert json.loads(dumps(found))["logprob"] == -9999.0
    with pytest.raises(NoFiniteLogitsError):
        logprobs(logits[1:4], 0, 0)
