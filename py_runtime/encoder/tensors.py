"""An encoder's tensors: their names and shapes, as they follow from its sizes."""

from py_runtime.base.shapes import Dims
from py_runtime.encoder.config import EncoderConfig
from py_runtime.encoder.families import (
    ATTENTION_NORM,
    DOWN,
    EMBEDDING_NORM,
    GATE,
    KEYS,
    MIXED,
    MLP_NORM,
    POSITIONS,
    QUERIES,
    SCORE,
    SCORE_HIDDEN,
    TYPES,
    UP,
    VALUES,
    WORDS,
)


def expected_shapes(config: EncoderConfig) -> dict[str, Dims]:
    """Return every tensor that a model must have."""
    c = config
    shapes: dict[str, Dims] = {WORDS: (c.vocabulary, c.width)}
    if not c.family.is_turned:
        shapes[POSITIONS] = (c.positions, c.width)
    if c.types:
        shapes[TYPES] = (c.types, c.width)
    shapes |= _norm(EMBEDDING_NORM, c)
    for number in range(c.layers):
        path = f"layers.{number}."
        for name, (rows, columns) in layer_matrices(c).items():
            shapes[f"{path}{name}.weight"] = (rows, columns)
            if c.family.has_biases:
                shapes[f"{path}{name}.bias"] = (rows,)
        shapes |= _norm(path + ATTENTION_NORM, c) | _norm(path + MLP_NORM, c)
    if c.scores:
        for name, rows in ((SCORE_HIDDEN, c.width), (SCORE, 1)):
            shapes |= {f"{name}.weight": (rows, c.width), f"{name}.bias": (rows,)}
    return shapes


def layer_matrices(config: EncoderConfig) -> dict[str, tuple[int, int]]:
    """Return every matrix of a layer: rows, columns."""
    width, hidden = config.width, config.hidden
    attention = dict.fromkeys((QUERIES, KEYS, VALUES, MIXED), (width, width))
    gate = {GATE: (hidden, width)} if config.family.is_gated else {}
    return {**attention, **gate, UP: (hidden, width), DOWN: (width, hidden)}


def is_matrix(name: str, dims: Dims) -> bool:
    """Return whether a tensor may be stored in another kind than f32.

    Tables of positions and types are small, and rows of them are added.
    """
    return len(dims) == 2 and name not in (POSITIONS, TYPES)


def _norm(path: str, config: EncoderConfig) -> dict[str, Dims]:
    return {f"{path}.weight": (config.width,), f"{path}.bias": (config.width,)}
