"""A small autoencoder that is trained on a model's activations."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import AbortedError, RequestError
from py_runtime.glass.autoencoders.autoencoder import load_autoencoder
from py_runtime.glass.autoencoders.training import train, train_autoencoder
from py_runtime.glass.views.features import features
from py_runtime.model import Model
from tests.glass.room import with_model
from tests.runners import CpuRunner, wait

DIRECTIONS, WIDTH, K = 24, 32, 2
HOOK = "blocks.1.hook_resid_post"


def sums_of_directions(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors that are sums of two of some directions each, and these directions."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(DIRECTIONS, WIDTH))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    rng = np.random.default_rng(seed)
    x = np.zeros((600, WIDTH), np.float32)
    for row in x:
        row += rng.uniform(5, 10, K) @ directions[rng.choice(DIRECTIONS, K, replace=False)]
    return x + 3, directions


def explained(tensors: dict[str, np.ndarray], x: np.ndarray, k: int) -> float:
    given = x - tensors["b_dec"]
    pre = np.maximum(given @ tensors["W_enc"], 0)
    pre[pre < np.sort(pre, axis=1)[:, -k, None]] = 0
    error = pre @ tensors["W_dec"] - given
    return float(1 - np.square(error).sum() / np.square(x - x.mean(axis=0)).sum())


def test_it_finds_the_directions_that_activations_are_made_of() -> None:
    x, directions = sums_of_directions(1)
    steps: list[int] = []
    tensors = wait(train(x, 48, K, 400, progress=lambda done, _: steps.append(done)))
    other, _ = sums_of_directions(2)
    assert explained(tensors, other, K) > 0.85, "also of vectors that it has not seen"
    assert explained(wait(train(x, 48, K, 1)), other, K) < 0.7
    near = (directions @ tensors["W_dec"].T).max(axis=1)
    assert np.median(near) > 0.95
    np.testing.assert_allclose(np.linalg.norm(tensors["W_dec"], axis=1), 1, rtol=1e-5)
    assert steps == list(range(1, 401))


def test_gradients_are_those_of_the_squared_error() -> None:
    from py_runtime.glass.autoencoders.training import _gradients

    rng = np.random.default_rng(3)
    batch, encoder, decoder = (rng.normal(size=(n, 7)) for n in (5, 9, 9))

    def loss() -> float:
        pre = batch @ encoder.T
        pre[pre < np.sort(pre, axis=1)[:, -3, None]] = 0
        error = np.maximum(pre, 0) @ decoder - batch
        return float(np.square(error).sum() / len(batch) / 2)

    for found, weights in zip(
        _gradients(batch, encoder, decoder, 3), (encoder, decoder), strict=True
    ):
        wanted = np.zeros_like(weights)
        for place in np.ndindex(weights.shape):
            for sign in (1, -1):
                weights[place] += sign * 1e-6
                wanted[place] += sign * loss() / 2e-6
                weights[place] -= sign * 1e-6
        np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_it_is_trained_on_a_model_and_kept_in_a_file(
    cpu: CpuRunner, toy_model: Path, tmp_path: Path
) -> None:
    texts = ["one two three four five six", "seven eight nine ten"]
    path = tmp_path / "own.safetensors"

    async def look(model: Model) -> list[Any]:
        sae = await train_autoencoder(
            model, texts, HOOK, features=20, k=3, steps=60, name="own", path=path
        )
        again = await load_autoencoder(path)
        return [
            (sae, again),
            [await features(model, texts[0], each) for each in (sae, again)],
        ]

    (sae, again), (found, same) = with_model(cpu, toy_model, look)
    assert (sae.name, sae.hook, sae.features, sae.kind) == ("own", HOOK, 20, "TopK")
    assert again.hook == HOOK
    assert found["explained"] > 0.5
    assert found["l0"] <= 3
    np.testing.assert_array_equal(found["activations"], same["activations"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"texts": "a text"}, "texts is a list"),
        ({"texts": []}, "texts is a list"),
        ({"features": 0}, "features must be"),
        ({"k": 30}, "k must be an integer from 1 to 20"),
        ({"hook": "blocks.*.hook_resid_post"}, "an autoencoder reads one"),
        ({"texts": [[5]]}, "give longer texts"),
    ],
)
def test_what_cannot_be_trained_says_why(
    cpu: CpuRunner, toy_model: Path, given: dict[str, Any], said: str
) -> None:
    async def look(model: Model) -> None:
        fields: dict[str, Any] = {
            "texts": ["one two three"],
            "hook": HOOK,
            "features": 20,
            "k": 2,
        } | given
        with pytest.raises(RequestError, match=said):
            await train_autoencoder(model, fields.pop("texts"), fields.pop("hook"), **fields)

    with_model(cpu, toy_model, look)


def test_it_can_be_stopped() -> None:
    cancel = CancelToken()
    with pytest.raises(AbortedError):
        wait(
            train(
                sums_of_directions(1)[0],
                8,
                2,
                50,
                progress=lambda *_: cancel.cancel(),
                cancel=cancel,
            )
        )
