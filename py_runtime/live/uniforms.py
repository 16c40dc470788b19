"""One uniform buffer for a graph's live scalars and every kernel's parameters.

The host keeps a mirror; what changed since the last upload goes up in one write.
"""

import struct
from functools import cache

import numpy as np

from py_runtime.base.errors import GraphError
from py_runtime.base.shapes import round_up
from py_runtime.gpu.kernel_sources import KernelSource
from py_runtime.gpu.shader_figures import Member, evaluate, members_of

SYMINT_BYTES = 16  # an int32, zero padded: the smallest uniform WebGPU binds
_UNIT = 16  # uniforms, and structs and vectors inside them, begin at a multiple of it
_SCALARS = {"u32": "I", "i32": "i", "f32": "f", "vec4u": "4I", "vec4i": "4i", "vec4f": "4f"}


class ParamsLayout:
    """The fields of a shader's `struct Params`, read from the shader itself.

    Members of a struct inside Params count as its own: each is packed by its name alone.
    """

    def __init__(self, kernel: KernelSource) -> None:
        self._kernel = kernel
        self.offsets: dict[str, int] = {}  # in bytes, in the order of the shader
        self._codes = "<"
        self._end = 0
        self._add_members("Params")
        if not self.offsets:
            raise GraphError(f"shader '{kernel.label}' has no `struct Params`")
        self.names = list(self.offsets)
        self.name_set = frozenset(self.names)
        padding = -self._end % _UNIT
        self.struct = struct.Struct(f"{self._codes}{padding}x")

    def _add_members(self, of: str) -> None:
        for member in members_of(self._kernel.source, of):
            if member.type in _SCALARS:
                self._add(of, member)
                continue
            start = self._end
            self._add_members(member.type)
            self._require(
                start < self._end and member.length is None,
                f"'{member.name}' of {of} is of the type {member.type}, which cannot be packed",
            )
            self._require(
                start % _UNIT == self._end % _UNIT == 0,
                f"'{member.name}' of {of} must begin and end at a multiple of {_UNIT} bytes, as a "
                f"struct inside a uniform does; it lies at {start} to {self._end}",
            )

    def _add(self, of: str, member: Member) -> None:
        code = _SCALARS[member.type]
        self._require(
            not code.startswith("4") or self._end % _UNIT == 0,
            f"put '{member.name}' at the start of {of}, where a vec4 is aligned without padding",
        )
        self._require(member.name not in self.offsets, f"Params has two members '{member.name}'")
        if member.length is not None:
            length = evaluate(member.length, self._kernel.figures({}))
            self._require(
                length is not None and code.startswith("4"),
                f"'{member.name}' of {of} must be an array of vec4 with a length that can be read",
            )
            code *= length or 0
        self.offsets[member.name] = self._end
        self._codes += code
        self._end += struct.calcsize(code)

    def _require(self, holds: bool, fault: str) -> None:
        if not holds:
            raise GraphError(f"shader '{self._kernel.label}': {fault}")

    def pack(self, fields: dict[str, object]) -> bytes:
        """Return the bytes of the uniform; tuples are vectors, and arrays of them in a row."""
        values: list[object] = []
        for name in self.names:
            value = fields[name]
            if isinstance(value, tuple):
                values.extend(value)
            else:
                values.append(value)
        return self.struct.pack(*values)


@cache
def params_layout(kernel: KernelSource) -> ParamsLayout:
    """Return the layout of a kernel's parameters, parsed once for each kernel."""
    return ParamsLayout(kernel)


class UniformArena:
    """Slots handed out while a graph is built, then one mirror and one dirty range."""

    def __init__(self, alignment: int) -> None:
        self._alignment = alignment
        self._size = 0
        self.mirror = np.zeros(0, np.uint8)
        self._dirty_from = self._dirty_to = 0  # the GPU has seen everything where to < from

    @property
    def size(self) -> int:
        return max(self._size, SYMINT_BYTES)

    def reserve(self, nbytes: int) -> int:
        """Reserve a slot and return its offset; all slots are reserved before the first write."""
        offset = self._size
        self._size += round_up(nbytes, self._alignment)
        return offset

    def seal(self) -> None:
        self.mirror = np.zeros(self.size, np.uint8)
        self._bytes = self.mirror.data
        self._dirty_from, self._dirty_to = 0, self.size

    def write(self, offset: int, data: bytes) -> None:
        self._bytes[offset : offset + len(data)] = data
        self.mark_dirty(offset, offset + len(data))

    def mark_dirty(self, start: int, end: int) -> None:
        """Mark bytes in which the GPU differs from the mirror; none if `end` is before `start`."""
        if start < self._dirty_from:
            self._dirty_from = start
        if end > self._dirty_to:
            self._dirty_to = end

    def replace(self, mirror: np.ndarray) -> None:
        """Replace the mirror and mark what differs as dirty."""
        changed = np.flatnonzero(self.mirror.view(np.uint32) != mirror.view(np.uint32))
        if len(changed):
            self.mirror[:] = mirror
            self.mark_dirty(4 * int(changed[0]), 4 * int(changed[-1]) + 4)

    def dirty(self) -> tuple[int, np.ndarray] | None:
        """Return the offset and bytes of the range that the GPU has not seen."""
        if self._dirty_from >= self._dirty_to:
            return None
        return self._dirty_from, self.mirror[self._dirty_from : self._dirty_to]

    def uploaded(self) -> None:
        self._dirty_from, self._dirty_to = self.size, 0
