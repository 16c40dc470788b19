"""Damage to bytes: cuts, flips, numbers that lie, parts that repeat."""

import struct
from collections.abc import Callable
from random import Random

NUMBERS = [0, 1, 2, 4, 127, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1]
MARKS = (b"ET12", b"eh00", b"VH00", b"VK00", b"FT01", b"FH01")  # of files and of parts in them
NEAR = 1024  # bytes behind the beginning of a part: headers and tables are there


def damage_bytes(rng: Random, base: bytes) -> bytes:
    data = bytearray(base)
    for _ in range(1 + (rng.random() < 0.3)):
        if data:
            rng.choice(DAMAGE)(rng, data)
    return bytes(data)


def cut(rng: Random, data: bytearray) -> None:
    del data[rng.randrange(len(data)) :]


def flip_bits(rng: Random, data: bytearray) -> None:
    for _ in range(rng.randint(1, 8)):
        data[place(rng, data)] ^= 1 << rng.randrange(8)


def change_bytes(rng: Random, data: bytearray) -> None:
    for _ in range(rng.randint(1, 4)):
        data[place(rng, data)] = rng.randrange(256)


def lie(rng: Random, data: bytearray) -> None:
    """Turn a field, an offset, a length or a vtable's size into a number that means something."""
    for _ in range(rng.randint(1, 3)):
        width = rng.choice([2, 4, 8])
        number = rng.choice([*NUMBERS, len(data), max(len(data) - 8, 0), rng.randrange(len(data))])
        at = place(rng, data) // 2 * 2
        put(data, at, (number % 2 ** (8 * width)).to_bytes(width, "little"))


def shift(rng: Random, data: bytearray) -> None:
    """Make a number a little more or less: vectors and tables that nearly fit."""
    at = place(rng, data) // 4 * 4
    if at + 4 <= len(data):
        (number,) = struct.unpack_from("<I", data, at)
        put(data, at, struct.pack("<I", (number + rng.randint(-64, 64)) % 2**32))


def point_back(rng: Random, data: bytearray) -> None:
    """Make an offset lead to the same place as another, or (as a vtable's) anywhere before it."""
    at, other = place(rng, data) // 4 * 4, place(rng, data) // 4 * 4
    put(data, at, struct.pack("<i", other - at))


def repeat_part(rng: Random, data: bytearray) -> None:
    source, target = place(rng, data), place(rng, data)
    put(data, target, bytes(data[source : source + rng.randint(1, 255)]))


def splice(rng: Random, data: bytearray) -> None:
    """Insert a part once more: all that follows is somewhere else."""
    source, target = place(rng, data), place(rng, data)
    data[target:target] = data[source : source + rng.randint(1, 255)]


def drop_part(rng: Random, data: bytearray) -> None:
    at = place(rng, data)
    del data[at : at + rng.randint(1, 63)]


def blank_part(rng: Random, data: bytearray) -> None:
    at = place(rng, data)
    put(data, at, bytes([rng.choice([0, 255])]) * rng.randint(1, 255))


def rename(rng: Random, data: bytearray) -> None:
    """Another identifier, where there is one."""
    marks = [mark for mark in MARKS if mark in data]
    if marks:
        mark = rng.choice(marks)
        put(data, data.index(mark), bytes(rng.sample(list(mark), len(mark))))


DAMAGE: list[Callable[[Random, bytearray], None]] = [
    cut,
    flip_bits,
    change_bytes,
    *[lie] * 3,
    *[shift] * 2,
    point_back,
    repeat_part,
    splice,
    drop_part,
    blank_part,
    rename,
]


def place(rng: Random, data: bytearray) -> int:
    """Anywhere, but mostly where headers and tables are: near the beginning of a part."""
    parts = [0, *(at for mark in (b"VH00", b"VK00") if (at := data.find(mark)) >= 0)]
    if rng.random() < 0.7:
        return min(rng.choice(parts) + rng.randrange(NEAR), max(len(data) - 1, 0))
    return rng.randrange(len(data)) if data else 0


def put(data: bytearray, at: int, new: bytes) -> None:
    """Overwrite what is there; the file keeps its length."""
    end = min(at + len(new), len(data))
    data[at:end] = new[: max(end - at, 0)]
