"""Strided views of dense tensors: how kernels that broadcast, copy or look up address memory.

A kernel turns the linear index of an output element into an offset in each operand by a walk over
the axes, innermost first. With sizes n, strides s and the quotients q0 = index, q1 = q0 / n0,
q2 = q1 / n1, ... the offset is

    q0 * s0 + q1 * (s1 - n0 * s0) + q2 * (s2 - n1 * s1) + ...

so an axis costs one division, and axes that lie behind one another in every operand are one axis:
where nothing broadcasts the walk is the linear index itself. All of it is modulo 2^32, which allows
negative strides.
"""

from collections.abc import Sequence

from py_runtime.base.errors import InputError
from py_runtime.base.shapes import Dims, numel, strides_of
from py_runtime.gpu.shader_figures import figures_of, offset_of
from py_runtime.live.values import LiveInt, LiveTensor
from py_runtime.ops.registry import Op

MAX_AXES = figures_of("shared/walk")["MAX_AXES"]
COPY = "copies/strided_copy"
# The operands of a walk: each axis has a word for each of them in `steps`, which fill Params up to
# `sizes`.
OPERANDS = offset_of(COPY, "Params", "sizes") // (4 * MAX_AXES)


def walk(dims: Sequence[int], *strides: Sequence[int]) -> dict[str, object]:
    """Return the parameters of a walk over `dims`: count, and what shaders/shared/walk.wgsl reads.

    The strides are those of each operand, in the order in which the kernel has them.
    """
    sizes, merged = _merge(dims, strides)
    rank = len(sizes)
    if rank > MAX_AXES:
        raise InputError(f"{list(dims)} cannot be walked along {rank} axes; at most {MAX_AXES}")
    steps = [0] * (OPERANDS * MAX_AXES)  # [axis, operand]
    for operand, own in enumerate(merged):
        steps[operand] = own[0] % 2**32
        for axis in range(1, rank):
            jump = own[axis] - sizes[axis - 1] * own[axis - 1]
            steps[OPERANDS * axis + operand] = jump % 2**32
    # Axis k divides by the size of the axis inside it.
    inside = (1, *sizes[:-1], *[1] * (MAX_AXES - rank))
    return {"count": numel(dims), "rank": rank, "steps": tuple(steps), "sizes": inside}


def _merge(
    dims: Sequence[int], strides: Sequence[Sequence[int]]
) -> tuple[list[int], list[list[int]]]:
    """Innermost first, without axes of size 1, neighbours joined where every operand allows it."""
    sizes: list[int] = []
    merged: list[list[int]] = [[] for _ in strides]
    for axis in reversed(range(len(dims))):
        if dims[axis] == 1:
            continue
        own = [operand[axis] for operand in strides]
        if sizes and all(
            stride == steps[-1] * sizes[-1] for stride, steps in zip(own, merged, strict=True)
        ):
            sizes[-1] *= dims[axis]
            continue
        sizes.append(dims[axis])
        for stride, steps in zip(own, merged, strict=True):
            steps.append(stride)
    if not sizes:
        return [1], [[0] for _ in strides]
    return sizes, merged


class StridedCopy:
    """Moves 32-bit elements from a strided view of `source` into one of `destination`.

    A live `start` is bound as a uniform: while it is used as it is, only its own 4 bytes change.
    """

    def __init__(
        self, op: Op, source: LiveTensor, destination: LiveTensor, start: LiveInt | None = None
    ) -> None:
        self._start = start if start is not None and start.is_symint else None
        bound = self._start or op.builder.fixed_int(source.id, 0)
        self._launch = op.launch(COPY, bind={"x": source, "start": bound, "out": destination})

    def __call__(
        self,
        dims: Sequence[int],
        source: Sequence[int],
        destination: Dims | None = None,
        source_at: int = 0,
        destination_at: int = 0,
        start: int = 0,
        start_stride: int = 0,
    ) -> None:
        """Copy `dims` elements along these strides; a dense destination needs none.

        `start` is the position that the live start comes to, after wrapping and clamping.
        """
        given = self._start.value if self._start is not None else 0
        self._launch.for_each(
            numel(dims),
            **walk(dims, source, strides_of(dims) if destination is None else destination),
            source_at=(source_at + (start - given) * start_stride) % 2**32,
            destination_at=destination_at,
            start_stride=start_stride,
        )
