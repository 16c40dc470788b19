"""Steering vectors from two lists of prompts, and as safetensors files."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.base.short_texts import short
from py_runtime.folder.plain_safetensors import read_safetensors, write_safetensors
from py_runtime.glass.edits import Edit
from py_runtime.glass.given import tokens_of
from py_runtime.glass.points import point_named
from py_runtime.glass.steering import edits_of, steer
from py_runtime.glass.workspace import Workspace, looking
from py_runtime.graph.probes import run_probed
from py_runtime.model import Model

Floats = NDArray[np.float32]
MEAN, PCA = "mean", "pca"
POSITIONS = ("last", "mean")
MAX_PROMPTS = 1000
NAME, LAYER, STRENGTH = "name", "layer", "strength"
MODEL, SHAPE = "model", "model_hash"
MAX_NAME = 100  # characters
STREAM = re.compile(r"blocks\.(\d+)\.hook_resid_post")
FORMAT = {"format": "inpage-steering"}


async def build_vector(
    model: Model,
    positive: Sequence[Any],
    negative: Sequence[Any],
    layer: int,
    how: str = MEAN,
    position: str = "last",
    progress: Callable[[int, int], None] = lambda done, total: None,
    cancel: CancelToken | None = None,
) -> Floats:
    """Return the direction f32 [W] from the negative prompts to the positive ones.

    It is taken behind a layer (hook_resid_post), at the last token of each prompt or over all.
    "mean": the difference of the two means; "pca": the first principal component of all, centred in
    each pair where there are as many of both, pointing to the positive ones and as long as the
    difference of the means. Steering is switched off meanwhile.
    """
    if how not in (MEAN, PCA) or position not in POSITIONS:
        raise RequestError(f"how is {MEAN} or {PCA}, position {' or '.join(POSITIONS)}", "how")
    for name, given in (("positive", positive), ("negative", negative)):
        is_list = isinstance(given, Sequence) and not isinstance(given, str)
        if not is_list or not 0 < len(given) <= MAX_PROMPTS:
            raise RequestError(f"{name} must be a list of 1 to {MAX_PROMPTS} prompts", name)
    prompts = [tokens_of(model, each) for each in (*positive, *negative)]
    rows = await _rows(model, prompts, layer, position, progress, cancel or CancelToken())
    ours, others = rows[: len(positive)], rows[len(positive) :]
    difference = ours.mean(axis=0) - others.mean(axis=0)
    if how == MEAN:
        return np.asarray(difference, np.float32)
    if len(ours) == len(others):
        middles = (ours + others) / 2
        centred = np.concatenate([ours - middles, others - middles])
    else:
        centred = rows - rows.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    first = directions[0] * np.sign(directions[0] @ difference or 1.0)
    return np.asarray(first * np.linalg.norm(difference), np.float32)


async def _rows(
    model: Model,
    prompts: Sequence[list[int]],
    layer: int,
    position: str,
    progress: Callable[[int, int], None],
    cancel: CancelToken,
) -> NDArray[np.float64]:
    """Return the stream behind the layer for each prompt: [prompts, W]."""
    stream = point_named(Workspace.of(model).points, stream_hook(layer)).value
    found: list[np.ndarray] = []
    chunks: list[np.ndarray] = []

    async def run(inputs: list[np.ndarray]) -> list[np.ndarray]:
        if inputs[1][0] == 0:
            chunks.clear()  # it may not be the first time: devices are lost
        chunks.append((await run_probed(model.graph, inputs, [stream]))[stream][0])
        return chunks

    async with looking(model, cancel):
        with model.plainly():
            for prompt in prompts:
                await model.session.compute_each(prompt, cancel, run)
                whole = np.concatenate(chunks).astype(np.float64)  # [S, W]
                found.append(whole[-1] if position == "last" else whole.mean(axis=0))
                progress(len(found), len(prompts))
    return np.stack(found)


def stream_hook(layer: Any) -> str:
    """Return the name of the hook behind a layer."""
    if isinstance(layer, bool) or not isinstance(layer, int) or layer < 0:
        raise RequestError("layer must be an integer from 0 on", "layer")
    return f"blocks.{layer}.hook_resid_post"


async def add_vector(
    model: Model, name: str, layer: int, values: np.ndarray, strength: float = 1.0
) -> None:
    """Add a vector behind a layer to what steers the model, in place of one of that name."""
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        raise RequestError(f"a vector needs a name of up to {MAX_NAME} characters", "name")
    others = [edit for edit in edits_of(model) if edit.name != name]
    own = Edit(stream_hook(layer), vector=values, strength=strength, name=name)
    await steer(model, [*others, own])


def vectors_of(model: Model) -> dict[str, tuple[int, Edit]]:
    """Return the named vectors that steer the model, each with its layer."""
    found = {}
    for edit in edits_of(model):
        match = STREAM.fullmatch(edit.hook)
        if match is not None and edit.kind == "add" and edit.name:
            found[edit.name] = int(match[1]), edit
    return found


def save_vector(model: Model, name: str) -> bytes:
    """Return a vector as a safetensors file, with its name, layer and strength, and the model's."""
    vectors = vectors_of(model)
    if name not in vectors:
        raise RequestError(f"no vector is called {short(name)}", "name")
    layer, edit = vectors[name]
    facts = {NAME: name, LAYER: str(layer), STRENGTH: f"{edit.strength:g}"}
    return write_safetensors(
        {"vector": np.asarray(edit.vector, np.float32)},
        {**FORMAT, **facts, MODEL: model.manifest.name, SHAPE: _shape_hash(model)},
    )


@dataclass(frozen=True)
class StoredVector:
    """A vector as a file has it."""

    name: str
    layer: int
    strength: float
    values: np.ndarray  # [W]
    model: str  # that it was made with
    shape: str | None  # the hash of that model's layers and sizes


def read_vector(data: bytes, file: str) -> StoredVector:
    """Read such a file; RequestError or ModelError says what is wrong with it."""
    tensors = read_safetensors(file, data)
    facts = tensors.metadata
    if facts.get("format") != FORMAT["format"] or "vector" not in tensors.stored:
        raise RequestError(f"{file} holds no steering vector of inpage", "file")
    try:
        layer, strength = int(facts[LAYER]), float(facts[STRENGTH])
    except (KeyError, ValueError):
        raise RequestError(f"{file} does not say its layer and strength", "file") from None
    name, model = facts.get(NAME) or "vector", facts.get(MODEL, "another model")
    return StoredVector(name, layer, strength, tensors.floats("vector"), model, facts.get(SHAPE))


async def load_vector(model: Model, data: bytes, file: str = "the file") -> str:
    """Add a vector from such a file, and return its name."""
    found = read_vector(data, file)
    if found.shape != _shape_hash(model):
        raise RequestError(
            f"{file} is for {short(found.model)}, whose layers are not like those of "
            f"{model.manifest.name}: load the model that it was made with",
            "file",
        )
    await add_vector(model, found.name, found.layer, found.values, found.strength)
    return found.name


def _shape_hash(model: Model) -> str:
    """Return a hash of the model's layers and sizes, the same for all its quantisations."""
    anatomy = Workspace.of(model).anatomy
    sizes = (len(anatomy.blocks), anatomy.width, anatomy.vocabulary)
    return sha256(repr(sizes).encode()).hexdigest()
