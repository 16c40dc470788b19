"""The contract of a kernel that the host computes outside the delegate: arguments and results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from py_runtime.base.shapes import Dims, numel
from py_runtime.pte.container import EValue, HostTensor, TensorIds

Array = np.ndarray
MAX_ELEMENTS = 1 << 28  # of a result: a file can ask for it with a few bytes
# Kinds of arguments. These may differ from call to call,
TENSOR, TENSORS, NUMBER = "tensor", "tensors", "number"
# and these are fixed by the file. IGNORED: dtypes, which the output says, and layouts.
AXIS, FLAG, WHOLE, REAL, WORD, INTS, IGNORED = (
    "axis", "flag", "whole number", "real number", "word", "ints", "ignored",
)  # fmt: skip
MAYBE_AXIS, MAYBE_NUMBER, MAYBE_AXES = "axis or null", "number or null", "axes or null"


@dataclass(frozen=True)
class LiveArgument:
    """An argument that is known when the method runs: value ids; -1 stands for none in a list."""

    ids: tuple[int, ...]
    is_list: bool = False


Argument = LiveArgument | EValue


@dataclass(frozen=True)
class HostKernel:
    """A kernel.

    A file's call has the arguments in this order, then each output, then all of them.
    """

    kinds: tuple[str, ...]
    dims: Callable[..., Dims | None]  # of each output, from the arguments in the file; None: wrong
    compute: Callable[..., Any]  # from the first output's dtype and the arguments of a call
    outputs: int = 1

    def bind(
        self, values: Sequence[EValue], ids: Sequence[int], given: frozenset[int]
    ) -> tuple[Argument, ...] | None:
        """Return a call's arguments; None where they are of another form.

        `given` are the values that callers pass.
        """
        count = len(self.kinds)
        outs = tuple(ids[count : count + self.outputs])
        if len(ids) != count + self.outputs + 1 or not _ends_with(values, outs, ids[-1]):
            return None
        bound: list[Argument] = []
        shown: list[Any] = []  # what `dims` sees: tensors of the file, and fixed values
        for kind, at in zip(self.kinds, ids, strict=False):
            found = _bind_argument(kind, values, at, given, shown)
            if found is None:
                return None
            bound.append(found[0])
            shown.append(found[1])
        results = [values[at] for at in outs]
        wanted = self.dims(*shown)
        is_sound = wanted is not None and numel(wanted) <= MAX_ELEMENTS
        if not is_sound or any(
            not isinstance(out, HostTensor) or out.dims != wanted for out in results
        ):
            return None
        return tuple(bound)


def _ends_with(values: Sequence[EValue], outs: tuple[int, ...], last: int) -> bool:
    if len(outs) == 1:
        return last == outs[0]
    both = values[last]
    return isinstance(both, TensorIds) and both.ids == outs


def _bind_argument(
    kind: str, values: Sequence[EValue], at: int, given: frozenset[int], before: list[Any]
) -> tuple[Argument, Any] | None:
    """Return the argument of a step, and what `dims` sees of it."""
    value = values[at]
    if kind == TENSOR:
        return (LiveArgument((at,)), value) if isinstance(value, HostTensor) else None
    if kind == TENSORS:
        return _bind_list(values, value)
    if kind == NUMBER or (kind == MAYBE_NUMBER and (value is not None or at in given)):
        is_number = isinstance(value, bool | int | float) or (value is None and at in given)
        return (LiveArgument((at,)), value) if is_number else None
    if kind in (INTS, MAYBE_AXES) and isinstance(value, tuple):  # ids of integers
        if not all(type(each) is int and 0 <= each < len(values) for each in value):
            return None
        value = tuple(values[int(each)] for each in value)  # type: ignore[assignment]
    rank = len(before[0].dims) if before and isinstance(before[0], HostTensor) else 0
    return (value, value) if _is_of(kind, value, rank) else None


def _bind_list(values: Sequence[EValue], value: EValue) -> tuple[Argument, Any] | None:
    if not isinstance(value, TensorIds) or any(at >= len(values) for at in value.ids):
        return None
    tensors = [None if at < 0 else values[at] for at in value.ids]
    if not all(each is None or isinstance(each, HostTensor) for each in tensors):
        return None
    return LiveArgument(value.ids, is_list=True), tensors


def _is_of(kind: str, value: Any, rank: int) -> bool:
    """`rank` is the first tensor's, of which axes are."""
    whole = type(value) is int
    if value is None:
        return kind in (MAYBE_AXIS, MAYBE_NUMBER, MAYBE_AXES, IGNORED, WORD)
    if kind in (AXIS, MAYBE_AXIS):
        return whole and -rank <= value < rank
    if kind == MAYBE_AXES:
        axes = isinstance(value, tuple) and all(type(each) is int for each in value)
        inside = axes and all(-rank <= each < rank for each in value)
        return inside and len({each % rank for each in value}) == len(value)
    if kind == INTS:
        return isinstance(value, tuple) and all(type(each) is int for each in value)
    if kind == FLAG:
        return isinstance(value, bool)
    if kind == WORD:
        return isinstance(value, str)
    if kind == REAL:
        return whole or isinstance(value, float)
    return whole if kind == WHOLE else kind == IGNORED
