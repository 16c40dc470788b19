"""Constants that a graph takes from another one of the same model."""

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

import numpy as np

from py_runtime.gpu import PLAN_COLUMNS, Copy, Device, padded_size
from py_runtime.program import NullValue, Program, TensorValue
from py_runtime.weights.constants import Place, PlacesByName


def without_constants(program: Program, known: Container[str]) -> Program:
    """Return the program without these constants, for a source that need not have them."""
    values = tuple(
        NullValue() if isinstance(v, TensorValue) and v.constant in known else v
        for v in program.values
    )
    return replace(program, values=values)


async def done() -> None:
    """Do nothing, where nothing is to be uploaded."""


async def copy_constants(
    device: Device, program: Program, known: PlacesByName, wanted: PlacesByName
) -> None:
    """Fill the wanted places from those where the same bytes lie already, on the device."""
    sizes = {name: value.gpu_bytes for _, value, name in program.constants()}
    steps, rows = [], []
    for name, places in wanted.items():
        for place in places:
            for source, row in _copies(known[name], place, sizes[name]):
                steps.append(Copy(f"{name} into {place.buffer.label}", source.buffer, place.buffer))
                rows.append(row)
    if not steps:
        return
    plan = device.create_plan(f"{program.name} constants", steps)
    device.submit(plan, np.array(rows, np.uint32).reshape(-1, PLAN_COLUMNS))
    await device.finish_writes()
    device.release([plan])


def _copies(
    known: Sequence[Place], wanted: Place, size: int
) -> Iterator[tuple[Place, tuple[int, int, int]]]:
    """Yield where the bytes of a place come from: (offset there, offset here, bytes)."""
    position = wanted.start
    end = size if wanted.nbytes is None else wanted.start + wanted.nbytes
    while position < end:
        source, last = next(
            (place, last)
            for place in known
            if place.start <= position < (last := _end(place, size))
        )
        taken = min(end, last) - position
        at = source.offset + position - source.start
        yield source, (at, wanted.offset + position - wanted.start, padded_size(taken))
        position += taken


def _end(place: Place, size: int) -> int:
    return size if place.nbytes is None else place.start + place.nbytes
