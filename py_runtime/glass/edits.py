"""Edits of activations: what is added, scaled, taken away or put in, where, and how strongly.

Each is gain * x + bias, so that several of one place become a single one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np

from py_runtime.base.errors import RequestError
from py_runtime.base.shapes import Dims, numel
from py_runtime.glass.points import NORMALISED, VALUE, HookPoint, point_named
from py_runtime.glass.slots import FOREVER

Kind = Literal["add", "scale", "ablate", "replace"]
KINDS = ("add", "scale", "ablate", "replace")
MAX_STRENGTH = 1e6
MAX_NUMBER = 1e30  # of a vector: times any strength, it is a float still
ALL, PROMPT, GENERATED = "all", "prompt", "generated"
# "all", "prompt", "generated", a position, or (from, to).
Positions = str | int | tuple[int, int]


@dataclass(frozen=True)
class Edit:
    """A change of one hook's activation.

    add: x + strength * vector; scale: x * strength; ablate: x * (1 - strength); replace: the
    vector in place of x (between the two where the strength is not 1). A vector is one for all
    positions, or has a row for each. `heads` and `neurons` are those that change, if not all.
    """

    hook: str
    kind: Kind = "add"
    vector: Any = None
    strength: float = 1.0
    positions: Positions = ALL
    heads: tuple[int, ...] | None = None
    neurons: tuple[int, ...] | None = None
    name: str = ""  # by which its strength is changed

    @classmethod
    def parse(cls, given: Any) -> "Edit":
        """Take an Edit, or its fields as a dict."""
        if isinstance(given, cls):
            edit = given
        elif isinstance(given, Mapping):
            unknown = given.keys() - {each.name for each in fields(cls)}
            if unknown or "hook" not in given:
                fault = f"no {min(unknown)!r:.50}" if unknown else "a hook"
                raise RequestError(f"an edit has {fault}: {', '.join(cls.names())}", "edits")
            edit = cls(**{name: value for name, value in given.items() if value is not None})
        else:
            raise RequestError(f"an edit is an Edit or a dict, got {given!r:.100}", "edits")
        return edit._checked()

    @classmethod
    def names(cls) -> list[str]:
        return [each.name for each in fields(cls)]

    @property
    def key(self) -> Positions:
        """Return where it applies, in one spelling."""
        at = self.positions
        return (at, at + 1) if isinstance(at, int) else at

    def with_strength(self, strength: Any) -> "Edit":
        return replace(self, strength=strength)._checked()

    def _checked(self) -> "Edit":
        if self.kind not in KINDS:
            raise RequestError(f"kind must be one of {', '.join(KINDS)}", "edits")
        strength = self.strength
        if isinstance(strength, bool) or not isinstance(strength, int | float):
            raise RequestError(f"strength must be a number, got {strength!r:.50}", "edits")
        if not abs(strength) <= MAX_STRENGTH:  # nor is NaN
            raise RequestError(f"strength must be {MAX_STRENGTH:g} at most", "edits")
        if (self.vector is None) != (self.kind in ("scale", "ablate")):
            needs = "needs a vector" if self.vector is None else "takes no vector"
            raise RequestError(f"an edit of kind {self.kind} {needs}", "edits")
        return replace(
            self,
            positions=_positions(self.positions),
            heads=None if self.heads is None else tuple(self.heads),
            neurons=None if self.neurons is None else tuple(self.neurons),
        )


@dataclass(frozen=True)
class Place:
    """A hook that can be edited, with the numbers that an edit needs."""

    point: HookPoint
    value: int  # the tensor that changes
    dims: Dims  # of a token
    factor: np.ndarray | None = None  # by which it is larger than the hook's activation

    @property
    def width(self) -> int:
        return numel(self.dims)

    @classmethod
    def of(cls, points: dict[str, HookPoint], name: str) -> "Place":
        """Return the place of a hook; RequestError if it cannot be edited on the device."""
        point = point_named(points, name)
        is_norm = point.kind == NORMALISED and point.layer is not None
        if point.kind != VALUE and not is_norm:
            raise RequestError(
                f"{point.name} can be changed by functions (run_with_hooks), not by edits", "edits"
            )
        assert point.kind == VALUE or point.norm is not None
        value = point.value if point.norm is None else point.norm.args[-1]
        return cls(point, value, tuple(int(dim) for dim in point.shape[2:]))


def rows_of(edit: Edit, place: Place) -> int:
    """Return how many rows of numbers an edit has: one for all positions, or one for each."""
    return len(_vector(edit, place))


def affine(edit: Edit, place: Place) -> tuple[np.ndarray, np.ndarray]:
    """Return gain and bias of an edit: f32 [rows, width]."""
    mask = _mask(edit, place)[None]
    strength = np.float32(edit.strength)
    vector = _vector(edit, place) * mask
    if edit.kind == "add":
        return np.ones_like(vector), strength * vector
    if edit.kind == "scale":
        return 1 + mask * (strength - 1), np.zeros_like(vector)
    return 1 - mask * strength + np.zeros_like(vector), strength * vector


def _vector(edit: Edit, place: Place) -> np.ndarray:
    """Return the vector's rows, each as wide as a token's activation: [rows, width]."""
    if edit.vector is None:
        return np.zeros((1, place.width), np.float32)
    array = np.atleast_1d(np.asarray(edit.vector, np.float32))
    if not (np.abs(array) <= MAX_NUMBER).all():  # nor is NaN
        raise RequestError(
            f"the vector for {edit.hook} has numbers that are not finite, or beyond {MAX_NUMBER:g}",
            "edits",
        )
    inner = place.dims[-1]
    if edit.neurons is not None and array.shape[-1] == len(edit.neurons) != place.width:
        whole = np.zeros((*array.shape[:-1], place.width), np.float32)
        whole[..., list(edit.neurons)] = array
        array = whole
    elif len(place.dims) == 2 and array.shape == (inner,):  # the same for each head
        array = np.tile(array, place.dims[0])
    width = place.width
    if not array.size or array.size % width or array.shape[-1] not in (width, inner):
        raise RequestError(
            f"the vector for {edit.hook} is {list(array.shape)}; it must be {list(place.dims)}, or "
            "have a row of this for each position",
            "edits",
        )
    rows = array.reshape(-1, width)
    if len(rows) > 1 and not isinstance(edit.key, tuple):
        raise RequestError(
            f"the vector for {edit.hook} has {len(rows)} rows: give the positions (from, to) that "
            "they are for",
            "edits",
        )
    return rows if place.factor is None else rows * place.factor


def _mask(edit: Edit, place: Place) -> np.ndarray:
    """Return 1 where the activation changes: f32 [width]."""
    mask = np.ones(place.dims, np.float32)
    for chosen, axis, name in ((edit.heads, 0, "heads"), (edit.neurons, -1, "neurons")):
        if chosen is None:
            continue
        if axis == 0 and len(place.dims) < 2:
            raise RequestError(f"{edit.hook} has no heads", "edits")
        count = place.dims[axis]
        if not all(isinstance(each, int) and 0 <= each < count for each in chosen):
            raise RequestError(f"{name} of {edit.hook} are 0 to {count - 1}", "edits")
        of_axis = np.isin(np.arange(count), chosen).astype(np.float32)
        mask *= of_axis[:, None] if axis == 0 else of_axis
    return mask.reshape(-1)


def _positions(given: Any) -> Positions:
    if isinstance(given, str) and given in (ALL, PROMPT, GENERATED):
        return given
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return given
    if isinstance(given, Sequence) and not isinstance(given, str) and len(given) == 2:
        first, end = given[0], FOREVER if given[1] is None else given[1]
        if isinstance(first, int) and isinstance(end, int) and 0 <= first < end:
            return (first, min(end, FOREVER))
    raise RequestError(
        f'positions are "all", "prompt", "generated", a position, or (from, to), got {given!r:.50}',
        "edits",
    )
