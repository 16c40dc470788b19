"""The goldens of a model folder: torch's results, to compare with (docs/blob.md)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from py_runtime.base.dtypes import F32, I32, DType
from py_runtime.base.model_errors import ModelError, ModelTensorsError
from py_runtime.folder.layout import ModelFolder, TensorPlace
from py_runtime.model.stores import Store

HIDDEN_TOKENS = "hidden_tokens"
HIDDEN = "hidden."  # the name of a value of the graph follows
LOGITS_PREFIX, TOKENS_PREFIX = "logits_", "tokens_"  # the prompt's length follows
PROMPT, CONTINUATION, MARGINS = "prompt_", "continuation_", "margins_"  # a number follows


class NoGoldensError(ModelError):
    """A model that was exported without goldens, so there is nothing to compare with."""

    code = "no_goldens"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} comes without goldens, so this GPU cannot be compared with PyTorch",
            "verify it on the machine that exports it: inpage export … --verify",
        )


@dataclass(frozen=True)
class GoldenLogits:
    """Torch's logits after a prompt."""

    tokens: list[int]
    logits: np.ndarray  # f32 [vocabulary], after the last token


@dataclass(frozen=True)
class GoldenText:
    """Torch's greedy continuation of a prompt."""

    prompt: list[int]
    continuation: list[int]  # the likeliest token, again and again
    margins: list[float]  # by how much each token's logit led the runner-up's


@dataclass(frozen=True)
class Goldens:
    """The goldens of a folder."""

    hidden_tokens: list[int]
    hidden: dict[
        str, np.ndarray
    ]  # by value of the graph, in chain order: its last row, f32 [width]
    logits: list[GoldenLogits]  # the shortest prompt first
    texts: list[GoldenText]


async def read_goldens(folder: ModelFolder, store: Store) -> Goldens:
    """Read the goldens; NoGoldensError if the folder has none."""
    file = folder.manifest.goldens
    if file is None or not folder.goldens:
        raise NoGoldensError(folder.manifest.name)
    data = await store.read(folder, file)
    assert isinstance(data, bytes), "goldens are not JSON"
    tensors = _Tensors(file, folder.goldens, data)
    hidden = {name: tensors.take(HIDDEN + name, F32) for name in tensors.suffixes(HIDDEN)}
    lengths = sorted(tensors.suffixes(LOGITS_PREFIX), key=lambda length: (len(length), length))
    return Goldens(
        hidden_tokens=tensors.take(HIDDEN_TOKENS, I32).tolist() if hidden else [],
        hidden=hidden,
        logits=[
            GoldenLogits(
                tensors.take(TOKENS_PREFIX + length, I32).tolist(),
                tensors.take(LOGITS_PREFIX + length, F32),
            )
            for length in lengths
        ],
        texts=[tensors.text(number) for number in tensors.suffixes(PROMPT)],
    )


class _Tensors:
    """The tensors of the file, all of them non-empty vectors."""

    def __init__(self, file: str, places: Mapping[str, TensorPlace], data: bytes) -> None:
        self._file = file
        self._places = places
        self._data = data

    def suffixes(self, prefix: str) -> list[str]:
        """Return what follows the prefix in the names that have it, in file order."""
        return [name[len(prefix) :] for name in self._places if name.startswith(prefix)]

    def take(self, name: str, dtype: DType) -> np.ndarray:
        place = self._places.get(name)
        if place is None or place.dtype is not dtype or len(place.dims) != 1 or place.dims[0] < 1:
            found = "is missing" if place is None else f"is {place.dtype.name} {list(place.dims)}"
            raise ModelTensorsError(
                f"{self._file}: the golden '{name}' {found}; it should be {dtype.name} [1 or more]"
            )
        (piece,) = place.pieces
        return np.frombuffer(self._data, dtype.host, place.dims[0], piece.offset)

    def text(self, number: str) -> GoldenText:
        continuation = self.take(CONTINUATION + number, I32).tolist()
        margins = self.take(MARGINS + number, F32).tolist()
        if len(margins) != len(continuation):
            raise ModelTensorsError(
                f"{self._file}: the golden '{MARGINS + number}' has {len(margins)} numbers for "
                f"{len(continuation)} tokens"
            )
        return GoldenText(self.take(PROMPT + number, I32).tolist(), continuation, margins)
