"""A sparse autoencoder: the features of activations, and what activations they stand for.

Weights stay in the file; they pass through in blocks, each time they are needed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.base.messages import message
from py_runtime.glass.autoencoders.errors import AutoencoderError
from py_runtime.glass.autoencoders.files import files_of, name_of, weights_and_config
from py_runtime.glass.autoencoders.layout import (
    CONSTANT_NORM,
    LAYER_NORM,
    TOP_K,
    Layout,
    hook_named,
    layout_of,
    read_config,
)
from py_runtime.glass.autoencoders.tensors import StreamedTensors

MAX_BYTES = 256 << 20  # of the features of all tokens that are looked at together
EPSILON = 1e-5
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Scales:
    """The normalisation of activations: (x - shift) / scale, each [S, 1]."""

    shift: np.ndarray
    scale: np.ndarray


class Autoencoder:
    """An autoencoder of a file; ask `load_autoencoder` for it."""

    def __init__(self, name: str, tensors: StreamedTensors, layout: Layout) -> None:
        self.name = name
        self.layout = layout
        self._tensors = tensors
        self._small: dict[str, np.ndarray] = {}

    @property
    def width(self) -> int:
        """Return the width of the activations that it reads."""
        return self.layout.width

    @property
    def features(self) -> int:
        """Return how many features it has."""
        return self.layout.features

    @property
    def hook(self) -> str | None:
        """Return the hook that it reads, where its files say so."""
        return self.layout.hook

    @property
    def kind(self) -> str:
        """Return what makes it sparse: ReLU, JumpReLU, TopK or gates."""
        return self.layout.kind

    def __repr__(self) -> str:
        hook = f" of {self.hook}" if self.hook else ""
        return f"<{self.name}: {self.features} features{hook}, {self.kind}>"

    async def load(self) -> None:
        """Read all but the matrices."""
        layout = self.layout
        names = (layout.bias, layout.own_bias, layout.threshold, *(layout.magnitude or ()))
        self._small = {name: await self._tensors.whole(name) for name in names if name}

    async def encode(
        self,
        x: np.ndarray,
        progress: Progress = lambda done, total: None,
        cancel: CancelToken | None = None,
    ) -> np.ndarray:
        """Return the features [S, F] of activations [S, D]; most are zero."""
        cancel = cancel or CancelToken()
        layout = self.layout
        if len(x) * self.features * 4 > MAX_BYTES:
            fits = max(1, MAX_BYTES // (4 * self.features))
            raise RequestError(message("autoencoder_too_much", tokens=len(x), most=fits))
        given = self._input(x)
        found = np.zeros((len(x), self.features), np.float32)
        rows = self._tensors.stored[layout.encoder].dims[0]
        async for here, block in self._tensors.blocks(layout.encoder):
            cancel.check()
            with np.errstate(over="ignore", invalid="ignore"):
                if layout.is_transposed:
                    found[:, here] = given @ block.T
                else:
                    # Rows in memory, as the page's numpy multiplies three times sooner.
                    found += given[:, here] @ np.ascontiguousarray(block.T).T
            progress(here.stop, rows)
        with np.errstate(over="ignore", invalid="ignore"):
            return self._finite(self._activated(found))

    def _input(self, x: np.ndarray) -> np.ndarray:
        normed, _ = self._normed(np.asarray(x, np.float32))
        own = self._small[self.layout.own_bias]
        return normed - own if self.layout.takes_bias_off else normed

    def _normed(self, x: np.ndarray) -> tuple[np.ndarray, Scales]:
        shift = np.zeros((len(x), 1), np.float32)
        scale = np.ones((len(x), 1), np.float32)
        if self.layout.norm == CONSTANT_NORM:
            length = np.linalg.norm(x, axis=-1, keepdims=True)
            scale = np.maximum(length / np.float32(self.width) ** 0.5, np.finfo(np.float32).tiny)
        elif self.layout.norm == LAYER_NORM:
            shift = x.mean(axis=-1, keepdims=True)
            deviation = x.std(axis=-1, ddof=1, keepdims=True) if self.width > 1 else scale
            return (x - shift) / (deviation + EPSILON), Scales(shift, deviation)
        return (x - shift) / scale, Scales(shift, scale)

    def _activated(self, pre: np.ndarray) -> np.ndarray:
        """Return the features of what the encoder's matrix gives; its memory is used again."""
        layout, small = self.layout, self._small
        if layout.magnitude is not None:
            gates = pre + small[layout.bias or ""] > 0
            scale, bias = (small[name] for name in layout.magnitude)
            return np.asarray(gates * np.maximum(pre * np.exp(scale) + bias, 0), np.float32)
        pre += small[layout.bias or ""]
        if layout.threshold is not None:
            pre *= pre > small[layout.threshold]
        np.maximum(pre, 0, out=pre)
        if layout.kind == TOP_K and layout.kept < self.features:
            for row in pre:  # one at a time: places of all would take as much memory again
                row[np.argpartition(row, -layout.kept)[: -layout.kept]] = 0
        return pre

    async def decode(
        self,
        features: np.ndarray,
        x: np.ndarray,
        progress: Progress = lambda done, total: None,
        cancel: CancelToken | None = None,
    ) -> np.ndarray:
        """Return the activations [S, D] that features [S, F] of `x` stand for."""
        cancel = cancel or CancelToken()
        found = np.zeros((len(features), self.width), np.float32)
        active: np.ndarray = np.any(features, axis=0)
        async for here, block in self._tensors.blocks(self.layout.decoder, active):
            cancel.check()
            own = active[here]
            with np.errstate(over="ignore", invalid="ignore"):
                found += features[:, here][:, own] @ block[own]
            progress(here.stop, self.features)
        _, scales = self._normed(np.asarray(x, np.float32))
        with np.errstate(over="ignore", invalid="ignore"):
            found = (found + self._small[self.layout.own_bias]) * scales.scale + scales.shift
        return self._finite(found)

    def _finite(self, values: np.ndarray) -> np.ndarray:
        """Refuse numbers that no float can hold: finite weights may still be absurd."""
        if not np.isfinite(values).all():
            raise AutoencoderError(message("autoencoder_overflow", name=self.name))
        return values

    def scale_of(self, x: np.ndarray) -> float:
        """Return by how much activations [S, D] are divided before they are read, on average."""
        return float(self._normed(np.asarray(x, np.float32))[1].scale.mean())

    async def direction(self, feature: int) -> np.ndarray:
        """Return what a feature stands for: its row of the decoder, f32 [D]."""
        self.check_feature(feature)
        return await self._tensors.row(self.layout.decoder, feature)

    def check_feature(self, feature: Any) -> None:
        """Refuse what is no number of a feature."""
        if type(feature) is not int or not 0 <= feature < self.features:
            raise RequestError(message("autoencoder_feature", last=self.features - 1), "feature")


async def load_autoencoder(where: Any) -> Autoencoder:
    """Open a sparse autoencoder: a path, the bytes of a safetensors file, or files by name.

    Its configuration (cfg.json or config.json) is taken from beside it. Layouts are those of
    SAELens, EleutherAI and Gemma Scope.
    """
    files = files_of(where)
    source, data, config = await weights_and_config(files)
    tensors = await StreamedTensors.open(source)
    layout = layout_of(tensors, None if data is None else read_config(config, data))
    name = name_of(where, files)
    if layout.hook is None and hook_named(name) != name:  # folders such as layers.10
        layout = replace(layout, hook=hook_named(name))
    found = Autoencoder(name, tensors, layout)
    await found.load()
    return found
