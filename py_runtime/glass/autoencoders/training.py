"""Training of a small autoencoder on what a model computes for some texts, by numpy alone.

It keeps the k strongest features of a token (TopK), so that nothing has to be weighed against
sparsity, and a page of text is enough to see something.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.folder.plain_safetensors import write_safetensors
from py_runtime.glass.autoencoders.autoencoder import Autoencoder, Progress, load_autoencoder
from py_runtime.glass.autoencoders.files import SAFETENSORS
from py_runtime.glass.runs import run_with_cache
from py_runtime.model import Model

BATCH = 256  # tokens of a step
RATE = 2e-3
FIRST, SECOND, TINY = 0.9, 0.99, 1e-8  # Adam's averages of gradients and of their squares
SLOWER = 0.3  # the share of steps, the last ones, in which the rate falls to nothing
MAX_FEATURES, MAX_STEPS, MAX_BYTES = 16384, 100_000, 512 << 20


async def train_autoencoder(
    model: Model,
    texts: Sequence[Any],
    hook: str,
    *,
    features: int = 128,
    k: int = 8,
    steps: int = 200,
    seed: int = 0,
    name: str = "trained",
    path: str | Path | None = None,
    progress: Progress = lambda done, total: None,
    cancel: CancelToken | None = None,
) -> Autoencoder:
    """Return an autoencoder of a hook, trained on these texts, messages or tokens.

    The first token of each is left out: its activations are of another size in most models. With
    `path` it is kept as a safetensors file, in the layout of SAELens.
    """
    cancel = cancel or CancelToken()
    _check(texts, features, k, steps)
    rows = []
    for done, text in enumerate(texts):
        _, cache = await run_with_cache(model, text, hook, return_type=None, cancel=cancel)
        if len(cache) != 1:
            raise RequestError(f"{hook!r} are {len(cache)} hooks; an autoencoder reads one", "hook")
        found = next(iter(cache.values()))[0]
        rows.append(found.reshape(len(found), -1)[1:])
        if sum(each.nbytes for each in rows) > MAX_BYTES:
            raise RequestError("the texts are too long together: take fewer of them", "texts")
        progress(done + 1, len(texts) + steps)
    x = np.concatenate(rows)  # [tokens, D]

    def trained(step: int, _: int) -> None:
        progress(len(texts) + step, len(texts) + steps)

    tensors = await train(x, features, k, steps, seed, trained, cancel)
    config = {
        "architecture": "topk",
        "k": str(k),
        "hook_name": next(iter(cache)),
        "model_name": model.manifest.name,
    }
    data = write_safetensors(tensors, config)
    if path is not None:
        Path(path).write_bytes(data)
    return await load_autoencoder({f"{name}{SAFETENSORS}": data})


async def train(
    x: np.ndarray,
    features: int,
    k: int,
    steps: int,
    seed: int = 0,
    progress: Progress = lambda done, total: None,
    cancel: CancelToken | None = None,
) -> dict[str, np.ndarray]:
    """Return the tensors, as SAELens names them, of an autoencoder of activations [S, D]."""
    cancel = cancel or CancelToken()
    if len(x) < 2 or not np.isfinite(x).all():
        raise RequestError("there is too little to learn from: give longer texts", "texts")
    middle = x.mean(axis=0)
    given = x - middle
    given /= max(float(np.sqrt(np.square(given).sum(axis=1).mean())), TINY)
    rng = np.random.default_rng(seed)
    # Features begin as tokens of the texts, which already rebuild some others; encoder and decoder
    # begin alike.
    some = np.resize(rng.permutation(len(given)), features)
    noise = rng.normal(0, 0.01 / np.sqrt(x.shape[1]), (features, x.shape[1]))
    decoder = _of_length_one((given[some] + noise).astype(np.float32))  # [F, D]
    encoder = decoder.copy()  # [F, D]
    steppers = _Adam(encoder), _Adam(decoder)
    for step in range(steps):
        await asyncio.sleep(0)  # a caller may cancel
        cancel.check()
        batch = given[rng.permutation(len(given))[:BATCH]]  # [B, D]
        of_encoder, of_decoder = _gradients(batch, encoder, decoder, k)
        # Along a feature's own direction there is nothing to learn: its length stays 1.
        of_decoder -= (of_decoder * decoder).sum(axis=1, keepdims=True) * decoder
        rate = RATE * min(1.0, (1 - step / steps) / SLOWER)
        steppers[0].step(of_encoder, rate)
        steppers[1].step(of_decoder, rate)
        _of_length_one(decoder)
        progress(step + 1, steps)
    return {
        "W_enc": np.ascontiguousarray(encoder.T),
        "b_enc": np.zeros(features, np.float32),
        "W_dec": decoder,
        "b_dec": middle.astype(np.float32),
    }


def _gradients(
    batch: np.ndarray, encoder: np.ndarray, decoder: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradients of the squared error with respect to encoder and decoder, each [F, D].

    All but the encoder's product is computed for the features that are active only.
    """
    pre = batch @ encoder.T  # [B, F]
    places = np.argpartition(pre, -k, axis=1)[:, -k:]  # [B, k]
    active = np.maximum(np.take_along_axis(pre, places, axis=1), 0)  # [B, k]
    directions = decoder[places]  # [B, k, D]
    error = (np.einsum("bk,bkd->bd", active, directions) - batch) / len(batch)
    of_active = np.einsum("bd,bkd->bk", error, directions) * (active > 0)
    order = np.argsort(places, axis=None, kind="stable")
    ordered = places.ravel()[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))

    def summed(factors: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the sums of factors [B, k] times rows [B, D], for each feature."""
        whole = (factors[..., None] * rows[:, None]).reshape(-1, rows.shape[1])[order]
        found = np.zeros_like(decoder)
        found[ordered[starts]] = np.add.reduceat(whole, starts, axis=0)
        return found

    return summed(of_active, batch), summed(active, error)


class _Adam:
    """Adam's way of changing a matrix, in place."""

    def __init__(self, values: np.ndarray) -> None:
        self._values = values
        self._mean, self._square = np.zeros_like(values), np.zeros_like(values)
        self._steps = 0

    def step(self, gradient: np.ndarray, rate: float) -> None:
        self._steps += 1
        self._mean += (1 - FIRST) * (gradient - self._mean)
        self._square += (1 - SECOND) * (np.square(gradient) - self._square)
        size = np.sqrt(self._square / (1 - SECOND**self._steps)) + TINY
        self._values -= rate / (1 - FIRST**self._steps) * self._mean / size


def _of_length_one(rows: np.ndarray) -> np.ndarray:
    """Bring rows to length 1 in place, and return them."""
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), TINY)
    return rows


def _check(texts: Any, features: Any, k: Any, steps: Any) -> None:
    if isinstance(texts, str) or not isinstance(texts, Sequence) or not texts:
        raise RequestError("texts is a list of texts, one at least", "texts")
    ranges = {"features": (features, MAX_FEATURES), "steps": (steps, MAX_STEPS)}
    if type(features) is int:
        ranges["k"] = (k, features)
    for name, (value, most) in ranges.items():
        if type(value) is not int or not 1 <= value <= most:
            raise RequestError(f"{name} must be an integer from 1 to {most}", name)
