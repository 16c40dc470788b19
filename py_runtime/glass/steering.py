"""Steering: edits that a model obeys while it writes, until they are cleared.

The model's own graph lends its weights and caches to another one with a slot for each hook that is
edited. Strengths and vectors are numbers in the slots, which change between two batches of tokens.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from py_runtime.base.errors import RequestError
from py_runtime.glass.beside import load_beside
from py_runtime.glass.edits import ALL, GENERATED, PROMPT, Edit, Place, Positions, affine, rows_of
from py_runtime.glass.hooked import HookedGraph
from py_runtime.glass.points import NORMALISED
from py_runtime.glass.slots import FOREVER, Slot, Wanted, with_slots
from py_runtime.glass.workspace import Workspace
from py_runtime.gpu import Write
from py_runtime.graph import Graph
from py_runtime.model import Model
from py_runtime.model.changed_graph import ChangedGraph
from py_runtime.program import Program

Edits = Sequence[Edit | dict[str, Any]]


class Steering:
    """The edits of a model, and the graph that has them."""

    graph: Graph
    program: Program  # of it, before passes

    def __init__(self, space: Workspace, changes: ChangedGraph, edits: Sequence[Edit]) -> None:
        self.edits = tuple(edits)
        self._space, self._changes = space, changes
        self._places = {edit.hook: Place.of(space.points, edit.hook) for edit in edits}
        self._slots: list[Slot] = []
        self._prompt: int | None = None  # where the last answer began
        self._border: int | None = None  # between prompt and answer, for what runs now
        self._stale = FOREVER  # from here on, caches hold what older numbers gave
        self._written: list[tuple[np.ndarray, np.ndarray]] = []
        self._shape = self._shape_of(self.edits)

    # Building ----------------------------------------------------------------------------------

    async def load(self, base: Graph) -> None:
        """Build the graph; the base lends what both have."""
        for hook, place in self._places.items():
            if place.point.kind == NORMALISED and place.factor is None:
                assert place.point.norm is not None
                weight = await HookedGraph(base, (), True, []).norm_weight(place.point.norm)
                self._places[hook] = replace(place, factor=weight)
        anatomy = self._space.anatomy
        wanted = [Wanted(value, rows) for value, rows, _ in self._shape]
        self.program, self._slots = with_slots(anatomy.program, anatomy, wanted, "steering")
        steered = replace(self.program, name=f"{self.program.name} steered")
        self.graph = await load_beside(base, steered, self._changes.source)
        self._write()

    def fits(self, edits: Sequence[Edit]) -> bool:
        """Return whether the graph has the slots that these edits need."""
        return self._shape_of(edits) == self._shape

    def _shape_of(self, edits: Sequence[Edit]) -> list[tuple[int, int, Positions]]:
        """Return (value, rows, positions) of each slot."""
        found = []
        for group in self._groups(edits):
            places = [self._places.get(edit.hook) for edit in group]
            if None in places:  # a hook that this graph has no slot for
                return []
            rows = max(rows_of(edit, self._places[edit.hook]) for edit in group)
            found.append((self._places[group[0].hook].value, rows, group[0].key))
        return found

    def _groups(self, edits: Sequence[Edit]) -> list[list[Edit]]:
        """Return the edits of each slot: of one value at the same positions, in their order."""

        def value(edit: Edit) -> int:
            place = self._places.get(edit.hook)
            return -1 if place is None else place.value

        ordered = sorted(edits, key=value)  # it keeps the order of equal ones
        return [list(group) for _, group in groupby(ordered, lambda edit: (value(edit), edit.key))]

    # Numbers -----------------------------------------------------------------------------------

    def change(self, edits: Sequence[Edit]) -> None:
        """Go on with other edits of the same shape: at once, in the middle of an answer, too."""
        self.edits = tuple(edits)
        if not self.graph.is_loaded:  # its device was lost; what takes its place gets the numbers
            return
        before = self._written
        self._write()
        for (_, _, where), old, new in zip(self._shape, before, self._written, strict=True):
            if not all(map(np.array_equal, old, new)):
                self._stale = min(self._stale, self._first(where))

    def _write(self) -> None:
        writes: list[Write] = []
        self._written = []
        for slot, group, (_, _, where) in zip(
            self._slots, self._groups(self.edits), self._shape, strict=True
        ):
            gain, bias = np.ones((1, slot.width), np.float32), np.zeros((1, slot.width), np.float32)
            for edit in group:
                own_gain, own_bias = affine(edit, self._places[edit.hook])
                gain, bias = own_gain * gain, own_gain * bias + own_bias
            self._written.append((gain, bias))
            writes += slot.writes(self.graph, gain, bias, self._span(where, self._border))
        self.graph.device.submit(None, None, writes)

    def _span(self, where: Positions, prompt: int | None) -> tuple[int, int]:
        if isinstance(where, tuple):
            return where
        border = FOREVER if prompt is None else prompt
        spans = {ALL: (0, FOREVER), PROMPT: (0, border), GENERATED: (border, FOREVER)}
        return spans[str(where)]

    def _first(self, where: Positions) -> int:
        """Return the first position that has been edited there."""
        return self._span(where, self._prompt)[0]

    # Answers -----------------------------------------------------------------------------------

    def begin(self, prompt: int) -> int:
        """Begin an answer after a prompt of so many tokens.

        Return how many positions of what the caches hold are as this prompt's would be.
        """
        border = self._prompt
        right, self._stale = self._stale, FOREVER
        if border is not None and any(w in (PROMPT, GENERATED) for _, _, w in self._shape):
            right = min(right, border)
        self._prompt = prompt
        self.reach(prompt)
        return right

    def reach(self, border: int | None = None) -> None:
        """Let edits of prompts and answers part there; None: where the last answer began."""
        self._border = self._prompt if border is None else border
        writes = [
            slot.reach(self.graph, self._span(where, self._border))
            for slot, (_, _, where) in zip(self._slots, self._shape, strict=True)
        ]
        self.graph.device.submit(None, None, writes)

    @property
    def first_edited(self) -> int:
        """Return the first position at which caches may hold something edited."""
        firsts = (self._first(where) for _, _, where in self._shape)
        return min(firsts, default=FOREVER)


def steering_of(model: Model) -> Steering | None:
    """Return what steers a model, if anything does."""
    overlay = model.overlay
    assert overlay is None or isinstance(overlay, Steering)
    return overlay


def edits_of(model: Model) -> tuple[Edit, ...]:
    """Return the edits that a model obeys."""
    steering = steering_of(model)
    return () if steering is None else steering.edits


async def steer(model: Model, edits: Edits | Edit | dict[str, Any]) -> None:
    """Let a model obey these edits, in place of those that it has, until `clear`.

    Where only strengths and vectors differ from those that it has, they change at once, even in the
    middle of an answer; other edits wait until it is written.
    """
    listed = [edits] if isinstance(edits, Edit | dict) else edits
    parsed = [Edit.parse(each) for each in listed]
    if not parsed:
        await clear(model)
        return
    space = Workspace.of(model)
    steering = steering_of(model)
    if steering is not None and steering.fits(parsed):
        steering.change(parsed)
        return
    wanted = Steering(space, model.changes, parsed)
    async with model.idle():
        with model.while_loaded():

            async def put() -> None:
                await model.put_over(wanted)

            await model.session.device.survive(put)


async def clear(model: Model) -> None:
    """Take all edits back: the model is as it was loaded."""
    async with model.idle():
        with model.while_loaded():
            await model.put_over(None)


async def set_strength(model: Model, which: int | str, strength: float) -> None:
    """Change the strength of one edit, by its number or its name, even during an answer."""
    edits = list(edits_of(model))
    found = [at for at, edit in enumerate(edits) if which in (at, edit.name)]
    if not found or which == "":
        raise RequestError(f"no edit is called {which!r:.50}", "name")
    for at in found:
        edits[at] = edits[at].with_strength(strength)
    await steer(model, edits)


@asynccontextmanager
async def steered(model: Model, edits: Edits | Edit | dict[str, Any]) -> AsyncIterator[Model]:
    """Let a model obey edits for a while, and then those that it had."""
    before = edits_of(model)
    await steer(model, edits)
    try:
        yield model
    finally:
        await steer(model, before)
