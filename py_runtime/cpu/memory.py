"""Addresses in the memory that the CPU's kernels share."""

from bisect import insort

from py_runtime.base.errors import GpuOutOfMemoryError
from py_runtime.base.shapes import round_up
from py_runtime.base.sizes import in_words

ALIGNMENT = 64  # a cache line


class Addresses:
    """A first-fit allocator; `end` grows up to `limit`, and what is freed is joined and reused."""

    def __init__(self, start: int, limit: int) -> None:
        self.end = round_up(start, ALIGNMENT)
        self._limit = limit
        self._free: list[tuple[int, int]] = []  # (address, bytes), by address
        self._sizes: dict[int, int] = {}

    @property
    def bytes_left(self) -> int:
        """Return how much is free, in one piece or in several."""
        return self._limit - self.end + sum(length for _, length in self._free)

    def allocate(self, label: str, nbytes: int) -> int:
        """Return the address of so many bytes; GpuOutOfMemoryError if there is no room."""
        size = round_up(max(nbytes, 1), ALIGNMENT)
        for at, (address, length) in enumerate(self._free):
            if length >= size:
                if length == size:
                    del self._free[at]
                else:
                    self._free[at] = (address + size, length - size)
                break
        else:
            address = self.end
            if address + size > self._limit:
                raise GpuOutOfMemoryError(
                    f"'{label}' takes {in_words(nbytes)}; the memory of {in_words(self._limit)} "
                    f"that WebAssembly allows has {in_words(self._limit - self.end)} left"
                )
            self.end += size
        self._sizes[address] = size
        return address

    def free(self, address: int) -> None:
        size = self._sizes.pop(address)
        insort(self._free, (address, size))
        joined: list[tuple[int, int]] = []
        for start, length in self._free:
            if joined and sum(joined[-1]) == start:
                joined[-1] = (joined[-1][0], joined[-1][1] + length)
            else:
                joined.append((start, length))
        if joined and sum(joined[-1]) == self.end:
            self.end = joined.pop()[0]
        self._free = joined
