"""One uniform buffer for a graph's live scalars and every kernel's parameters.

The host keeps a mirror; what changed since the last upload goes up in one write.
"""

import struct
from functools import cache

import numpy as np

from py_runtime.base.errors import GraphError
from py_runtime.base.shapes import round_up
from py_runtime.gpu.kernel_sources import KernelSource
from py_runtime.gpu.shader_figures import evaluate, members_of

SYMINT_BYTES = 16  # an int32, zero padded: the smallest uniform WebGPU binds
_SCALARS = {"u32": "I", "i32": "i", "f32": "f", "vec4u": "4I", "vec4i": "4i", "vec4f": "4f"}


class ParamsLayout:
    """The fields of a shader's `struct Params`, read from the shader itself."""

    def __init__(self, kernel: KernelSource) -> None:
        members = members_of(kernel.source, "Params")
        if not members:
            raise GraphError(f"shader '{kernel.label}' has no `struct Params`")
        self.names = [member.name for member in members]
        layout, offset = "<", 0
        for member in members:
            code = _SCALARS[member.type]
            if code.startswith("4") and offset % 16:
                raise GraphError(
                    f"shader '{kernel.label}': put '{member.name}' at the start of Params, where "
                    "a vec4 is aligned without padding"
                )
            if member.length is not None:
                code *= self._length(kernel, member.name, code, member.length)
            layout += code
            offset += struct.calcsize(code)
        self.name_set = frozenset(self.names)
        padding = -offset % 16
        self.struct = struct.Struct(f"{layout}{padding}x")

    @staticmethod
    def _length(kernel: KernelSource, name: str, code: str, expression: str) -> int:
        length = evaluate(expression, kernel.figures({}))
        if length is None or not code.startswith("4"):
            raise GraphError(
                f"shader '{kernel.label}': '{name}' of Params must be an array of vec4 with a "
                "length that can be read"
            )
        return length

    def pack(self, fields: dict[str, object]) -> bytes:
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
