"""A family's way to see: how images are prepared, computed and written into prompts."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from py_runtime.base.model_errors import ModelError
from py_runtime.base.shapes import Dims
from py_runtime.base.short_texts import short
from py_runtime.decoder.tensors import WeightKind
from py_runtime.program import Program
from py_runtime.vision.picture import Picture

CHANNELS = 3
HALVES = (0.5, 0.5, 0.5)
EPSILONS = (1e-12, 1e-1)
FLAGS = ("do_resize", "do_rescale", "do_normalize", "do_convert_rgb")


@dataclass(frozen=True)
class Colours:
    """The numbers that bytes of a pixel become: (byte / 255 - mean) / deviation."""

    mean: tuple[float, ...] = HALVES
    std: tuple[float, ...] = HALVES

    def check(self) -> None:
        shares = (*self.mean, *self.std)
        are_numbers = all(type(share) in (int, float) and abs(share) <= 1 for share in shares)
        if len(shares) != 2 * CHANNELS or not are_numbers or 0 in self.std:
            raise fault("its mean and deviation are not three numbers each, up to 1")

    def of(self, image: np.ndarray) -> np.ndarray:
        """Return an image u8 [H, W, 3] as f32."""
        mean, std = (np.array(each, np.float32) for each in (self.mean, self.std))
        return np.asarray((image.astype(np.float32) * np.float32(1 / 255) - mean) / std)


class Sight(ABC):
    """A tower's sizes, and all that its family does in its own way."""

    out: int  # columns of a row: the decoder's width
    colours: Colours
    written: ClassVar[str]  # by templates, for an image
    row_tokens: ClassVar[Sequence[str]]  # that stand for a row: the first that a tokenizer has
    others: ClassVar[Sequence[str]] = ()  # tokens that a tokenizer must have, too
    stand_in: ClassVar[str] = ""  # the token whose own embedding rows have; "": that of a row
    norms_from_one: ClassVar[Sequence[str]] = ()  # checkpoints hold what these have beyond 1
    ignored: ClassVar[Sequence[str]] = ()  # how names begin of what mmproj files have besides

    has_places: ClassVar[bool] = False  # rows have places in time, line and column

    @property
    def whole(self) -> int:
        """Return how many rows see each other: those of an image, or none."""
        return 0

    @property
    def deep_layers(self) -> int:
        """Return how many of the decoder's first layers take rows of their own."""
        return 0

    @property
    def columns(self) -> int:
        """Return the columns that a row has for the decoder's embedding and first layers."""
        return self.out * (1 + self.deep_layers)

    @abstractmethod
    def check(self) -> None:
        """Check the sizes; ModelError names the first that no tower has."""

    # The tower ---------------------------------------------------------------------------------

    def completed(self, stored: Mapping[str, Dims]) -> "Sight":
        """Return the same with what only the tensors of an mmproj file tell."""
        return self

    @abstractmethod
    def shapes(self) -> dict[str, Dims]:
        """Return every tensor that a file must have, by the engine's names."""

    @abstractmethod
    def is_matrix(self, name: str) -> bool:
        """Return whether a tensor may be stored in another kind than f32."""

    @abstractmethod
    def gguf_name(self, name: str) -> str:
        """Return what mmproj files call a tensor."""

    @abstractmethod
    def checkpoint_name(self, name: str) -> str:
        """Return what checkpoints call a tensor, without what stands before the whole tower."""

    def fused(self) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield tensors that files may have as one, and what its rows are, without endings."""
        yield from ()

    @abstractmethod
    def write(self, kinds: Mapping[str, WeightKind], name: str) -> Program:
        """Write the program; `kinds` has the kind of every matrix."""

    # Images ------------------------------------------------------------------------------------

    @abstractmethod
    def rows_of(self, picture: Picture) -> int:
        """Return how many tokens of the prompt are rows of this picture."""

    @abstractmethod
    def markup_of(self, picture: Picture, row: str) -> str:
        """Return what stands in the prompt for a picture, in place of what a template wrote."""

    @abstractmethod
    def calls_of(self, image: np.ndarray, is_coarse: bool) -> list[list[np.ndarray]]:
        """Return the inputs of each call of the tower for an image u8 [H, W, 3]."""

    def rows_from(
        self, results: list[list[np.ndarray]], image: np.ndarray, is_coarse: bool
    ) -> np.ndarray:
        """Return the rows of an image, of what the calls gave: f32 [rows, columns]."""
        return np.concatenate([rows[0] for (rows,) in results])

    def places_of(self, picture: Picture) -> np.ndarray:
        """Return where rows lie, from the first: by time, line and column: i64 [rows, 3].

        It is asked only of those that have places (`has_places`), which write it.
        """
        raise NotImplementedError


def patches_of(image: np.ndarray, patch: int, by_pixel: bool = False) -> np.ndarray:
    """Cut an image f32 [H, W, 3] into patches, line by line: [N, 3 · P · P].

    A patch's numbers go by channel, line and column; `by_pixel`, by line, column and channel.
    """
    lines, columns = (size // patch for size in image.shape[:2])
    whole = image[: lines * patch, : columns * patch]
    cut = whole.reshape(lines, patch, columns, patch, CHANNELS)
    cut = cut.transpose(0, 2, 1, 3, 4) if by_pixel else cut.transpose(0, 2, 4, 1, 3)
    return np.ascontiguousarray(cut.reshape(lines * columns, CHANNELS * patch**2))


def check_sizes(sizes: Mapping[str, tuple[Any, int]]) -> None:
    """Check that each is an integer from 1 to the most that is taken."""
    for name, (found, most) in sizes.items():
        if type(found) is not int or not 1 <= found <= most:
            raise fault(f"its {name} is {short(found)}, not an integer from 1 to {most}")


def check_epsilon(found: Any) -> None:
    """Check what norms add to a variance."""
    if type(found) not in (int, float) or not EPSILONS[0] <= found <= EPSILONS[1]:
        raise fault(f"its layer_norm_eps is {short(found)}")


def read_colours(given: Mapping[str, Any], usual: Colours) -> Colours:
    """Read a preprocessor_config.json's mean and deviation, and that nothing is left out."""
    for key in FLAGS:
        if given.get(key, True) is not True:
            raise fault(f"{key} is {short(given[key])}, which is not supported")
    numbers = {name: given.get(f"image_{name}", getattr(usual, name)) for name in ("mean", "std")}
    if not all(isinstance(each, list | tuple) for each in numbers.values()):
        raise fault("image_mean and image_std must be lists")
    return Colours(tuple(numbers["mean"]), tuple(numbers["std"]))


def check_resample(given: Mapping[str, Any], known: int) -> None:
    """Check the way in which images are scaled, which Pillow numbers."""
    if given.get("resample", known) != known:
        raise fault(f"resample is {short(given['resample'])}, which is not supported")


def renamed(name: str, whole: Mapping[str, str], layers: str, parts: Mapping[str, str]) -> str:
    """Return a file's name of a tensor: of the whole tower, or of one of its layers."""
    owner, _, ending = name.rpartition(".")
    if owner in whole:
        return f"{whole[owner]}.{ending}".removesuffix("..weight")
    _, number, part = owner.split(".", 2)
    return f"{layers}.{number}.{parts.get(part, part)}.{ending}"


def with_bias(path: str, *dims: int) -> dict[str, Dims]:
    """Return the shapes of a weight and its bias."""
    return {f"{path}.weight": dims, f"{path}.bias": dims[:1]}


def fitting(found: Dims, wanted: Dims) -> bool:
    """Return whether a stored shape is the wanted one; a kernel's pixels are columns here."""
    found = found or (1,)  # a number by itself
    first, *others = found
    columns = 1
    for each in others:
        columns *= each
    return found == wanted or (bool(others) and (first, columns) == wanted)


def fault(text: str) -> ModelError:
    """Return the error of a tower that cannot be run."""
    return ModelError(f"the part that sees images: {text}", "get another copy, or another model")
