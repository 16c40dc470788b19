"""Constants that a graph takes from another one of the same model."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from py_runtime.gpu import PLAN_COLUMNS, Copy, Device, padded_size
from py_runtime.program import NullValue, Program, TensorValue
from py_runtime.weights.constants import Place, PlacesByName


def without_constants(program: Program, known: PlacesByName) -> Program:
    """Return the program without these constants, for a source that need not have them."""
    values = tuple(
        NullValue() if isinstance(v, TensorValue) and known.get(v.constant or "") else v
        for v in program.values
    )
    return replace(program, values=values)


async def done() -> None:
    """Do nothing, where nothing is to be uploaded."""


async def copy_known(
    device: Device, program: Program, known: PlacesByName, wanted: PlacesByName
) -> dict[str, list[Place]]:
    """Fill places from others where the same bytes lie already, on the device.

    Return those that are left. Places in lent buffers are among the known ones.
    """
    lent = {id(place.buffer) for places in known.values() for place in places}
    sizes = {name: value.gpu_bytes for _, value, name in program.constants()}
    steps, rows = [], []
    left: dict[str, list[Place]] = {}
    for name, places in wanted.items():
        own = [place for place in places if id(place.buffer) not in lent]
        if not known.get(name):
            left |= {name: own} if own else {}
            continue
        for place in own:
            for source, row in _copies(known[name], place, sizes[name]):
                steps.append(Copy(f"{name} into {place.buffer.label}", source.buffer, place.buffer))
                rows.append(row)
    if not steps:
        return left
    plan = device.create_plan(f"{program.name} constants", steps)
    device.submit(plan, np.array(rows, np.uint32).reshape(-1, PLAN_COLUMNS))
    await device.finish_writes()
    device.release([plan])
    return left


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
