"""10,000 damaged files: each is read, or refused with an error of ours, and costs little.

Parsing, translation, the checks of the program and its ops' own run: all that needs no GPU.
"""

import resource
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from py_runtime.base.errors import InpageError
from py_runtime.graph.buffers import measure
from py_runtime.pte import open_pte
from tests.pte.lies import SOUND, SOUND_PTD, file
from tests.pte.memory_source import MemorySource
from tests.runners import wait

pytestmark = pytest.mark.long

Rng = np.random.Generator
FILES = sorted((Path(__file__).parent / "files").glob("*.pte"))
BASES = {"written": SOUND, **{path.stem: path.read_bytes() for path in FILES}}
TOTAL = 10_000
PTD_SHARE = 500
LARGE, LARGE_SHARE = 20_000, 300  # bytes; so many cases of each file above that
MAX_GROWTH = 128 << 20  # bytes of memory over the whole run

NUMBERS = [0, 1, 2, 4, 127, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1]


# Damage ------------------------------------------------------------------------------------------


def cut(rng: Rng, data: bytearray) -> None:
    del data[int(rng.integers(len(data))) :]


def flip_bits(rng: Rng, data: bytearray) -> None:
    for _ in range(rng.integers(1, 9)):
        data[place(rng, data)] ^= 1 << int(rng.integers(8))


def change_bytes(rng: Rng, data: bytearray) -> None:
    for _ in range(rng.integers(1, 5)):
        data[place(rng, data)] = int(rng.integers(256))


def lie(rng: Rng, data: bytearray) -> None:
    """A field, an offset, a length or a size of a vtable becomes a number that means something."""
    for _ in range(rng.integers(1, 4)):
        width = int(rng.choice([2, 4, 8]))
        numbers = [*NUMBERS, len(data), len(data) - 8, int(rng.integers(len(data)))]
        number = numbers[rng.integers(len(numbers))] % 2 ** (8 * width)
        at = place(rng, data) // 2 * 2
        put(data, at, number.to_bytes(width, "little"))


def shift(rng: Rng, data: bytearray) -> None:
    """A number becomes a little more or less: vectors and tables that nearly fit."""
    at = place(rng, data) // 4 * 4
    if at + 4 <= len(data):
        (number,) = struct.unpack_from("<I", data, at)
        put(data, at, struct.pack("<I", (number + int(rng.integers(-64, 65))) % 2**32))


def point_back(rng: Rng, data: bytearray) -> None:
    """An offset leads to the same place as another, or (as a vtable's) anywhere before it."""
    at, other = place(rng, data) // 4 * 4, place(rng, data) // 4 * 4
    put(data, at, struct.pack("<i", other - at))


def repeat_part(rng: Rng, data: bytearray) -> None:
    source, target = place(rng, data), place(rng, data)
    put(data, target, bytes(data[source : source + int(rng.integers(1, 256))]))


def drop_part(rng: Rng, data: bytearray) -> None:
    at = place(rng, data)
    del data[at : at + int(rng.integers(1, 64))]


def blank_part(rng: Rng, data: bytearray) -> None:
    at = place(rng, data)
    put(data, at, bytes([int(rng.choice([0, 255]))]) * int(rng.integers(1, 256)))


def rename(rng: Rng, data: bytearray) -> None:
    """Another identifier, where there is one."""
    marks = [mark for mark in (b"ET12", b"eh00", b"VH00", b"VK00", b"FT01") if mark in data]
    if marks:
        mark = marks[rng.integers(len(marks))]
        put(data, data.index(mark), bytes(rng.permutation(list(mark)).tolist()))


DAMAGE: list[Callable[[Rng, bytearray], None]] = [
    cut,
    flip_bits,
    change_bytes,
    *[lie] * 3,
    *[shift] * 2,
    point_back,
    repeat_part,
    drop_part,
    blank_part,
    rename,
]


def place(rng: Rng, data: bytearray) -> int:
    """Anywhere, but mostly where headers and tables are: near the beginning of a part."""
    parts = [0, *(at for mark in (b"VH00", b"VK00") if (at := data.find(mark)) >= 0)]
    if rng.random() < 0.7:
        begin = parts[rng.integers(len(parts))]
        return min(begin + int(rng.integers(1024)), len(data) - 1) if data else 0
    return int(rng.integers(len(data))) if data else 0


def put(data: bytearray, at: int, new: bytes) -> None:
    """Over what is there; the file keeps its length."""
    end = min(at + len(new), len(data))
    data[at:end] = new[: max(end - at, 0)]


def damaged(rng: Rng, base: bytes) -> bytes:
    data = bytearray(base)
    for _ in range(1 + int(rng.random() < 0.3)):
        if data:
            DAMAGE[rng.integers(len(DAMAGE))](rng, data)
    return bytes(data)


# The run -----------------------------------------------------------------------------------------


async def outcomes(cases: list[tuple[bytes, bytes | None]]) -> Counter[str]:
    """How often each kind of answer came; what is not an error of ours fails the test."""
    counted: Counter[str] = Counter()
    for content, data in cases:
        source = MemorySource(content)
        files = [] if data is None else [MemorySource(data, "model.ptd")]
        try:
            program = await open_pte(source, files)
            for method in program.methods.values():
                for step in method.delegates:
                    measure(step.program)  # builds every op, as far as that needs no GPU
            counted["read"] += 1
        except InpageError as error:
            counted[type(error).__name__] += 1
        assert sum(file.bytes_read for file in (source, *files)) <= 3 * (
            len(content) + len(data or b"")
        )
    return counted


def memory_peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def shares() -> dict[str, int]:
    """How many cases each sound file gives: large ones few, small ones all the others."""
    large = [name for name, base in BASES.items() if len(base) > LARGE]
    rest = TOTAL - PTD_SHARE - LARGE_SHARE * len(large)
    small = -(-rest // (len(BASES) - len(large)))
    return {name: LARGE_SHARE if name in large else small for name in BASES}


@pytest.mark.parametrize("name", BASES)
def test_damaged_files(name: str) -> None:
    base, count = BASES[name], shares()[name]
    rng = np.random.default_rng([len(base), *name.encode()])
    before = memory_peak()
    counted = wait(outcomes([(damaged(rng, base), None) for _ in range(count)]))
    assert counted.total() == count
    assert counted["PteError"] > count // 10
    assert memory_peak() - before < MAX_GROWTH


def test_damaged_data() -> None:
    """The .pte is sound, and its .ptd is not."""
    rng, program = np.random.default_rng(0), file(named={})
    counted = wait(outcomes([(program, damaged(rng, SOUND_PTD)) for _ in range(PTD_SHARE)]))
    assert counted.total() == PTD_SHARE
    assert counted["PteError"] > PTD_SHARE // 10


def test_as_many_as_were_promised() -> None:
    assert sum(shares().values()) + PTD_SHARE >= TOTAL


def test_sound_files_are_read() -> None:
    """Else the damage would prove nothing."""
    assert wait(outcomes([(SOUND, None), (file(named={}), SOUND_PTD)])) == {"read": 2}
