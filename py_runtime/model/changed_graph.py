"""The graph that a model runs, where something is added to its own: adapters.

It shares weights and states with the model's own graph, so that a change takes a moment. Numbers
such as strengths lie in constants that are written while the graph runs. What lies over it for a
while (steering: overlay.py) and graphs with hooks take their constants from here, and their passes
from the graph in use, so that a changed program is put together in one place.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from py_runtime.base.progress import Meter
from py_runtime.folder.layout import ModelFolder
from py_runtime.generation.session import Session
from py_runtime.gpu import Device
from py_runtime.graph import Graph
from py_runtime.model.overlay import Overlay
from py_runtime.passes import DEFAULT_PASSES, JOINING, Pass
from py_runtime.program import Program
from py_runtime.weights.constants import PlacesByName


@dataclass(frozen=True)
class Addition:
    """An addition of one owner to the graph."""

    joining: tuple[Pass, ...] = ()  # passes behind those that join linears
    # Constants that it adds, by their names, filled by the passes; and those that change later.
    arrays: Mapping[str, Any] = field(default_factory=dict)
    numbers: Callable[[], Mapping[str, np.ndarray]] = dict


class Owner(Protocol):
    """A part of a model that adds to its graph."""

    def addition(self) -> Addition | None:
        """Return what is to be added now; None where there is nothing."""


class ChangedModel(Protocol):
    """The parts of a model that this needs."""

    folder: ModelFolder
    session: Session
    overlay: Overlay | None

    @property
    def graph(self) -> Graph: ...

    @property
    def own_graph(self) -> Graph: ...

    def take_graph(self, graph: Graph) -> None: ...

    def idle(self) -> asyncio.Lock: ...

    def while_loaded(self) -> AbstractContextManager[None]: ...


class ChangedGraph:
    """The changes to a model's graph, by all who add to it."""

    def __init__(self, model: ChangedModel) -> None:
        self._model = model
        self._owners: list[Owner] = []
        self._plain: Graph | None = None  # the graph without additions, where there are some
        self._derived: Graph | None = None  # and the one with them
        self.plain_passes: tuple[Pass, ...] = ()  # of the graph without additions
        self._additions: Sequence[Addition] = ()
        self._is_stale = False  # the session was computed with other numbers

    def add_owner(self, owner: Owner) -> None:
        self._owners.append(owner)

    @property
    def source(self) -> "AddedConstants":
        """Return the constants that graphs of this model may need beyond its own."""
        return AddedConstants(self._additions)

    async def onto(self, plain: Graph) -> Graph:
        """Return the graph to run, for one that has just been loaded without additions."""
        self.leave()
        try:
            return await self._load(plain)
        except BaseException:
            plain.unload()
            raise

    @property
    def are_any(self) -> bool:
        """Return whether the graph in use has additions."""
        return self._plain is not None

    async def apply(self, change: Callable[[], None], undo: Callable[[], None]) -> None:
        """Change what an owner adds, while no answer is being written, or leave all as it was."""
        model = self._model
        async with model.idle():
            with model.while_loaded():
                former = model.own_graph
                # Others may have put a graph of theirs in the place of ours.
                plain = self._plain if self._plain and former is self._derived else former
                change()
                try:
                    graph = await self._load(plain)
                except BaseException:
                    undo()
                    raise
                model.take_graph(graph)
                self._is_stale = False
                if model.overlay is not None:
                    steered = model.overlay.graph
                    await model.overlay.load(graph)
                    steered.unload()
                if former is not plain:
                    former.unload()

    def write_numbers(self, is_lasting: bool = True) -> None:
        """Write the owners' numbers: they count from the next token on.

        Unless they are lasting, the caller takes them back before anybody uses the session again.
        """
        self._is_stale = self._is_stale or is_lasting
        if self._plain is not None:
            for graph in dict.fromkeys((self._model.own_graph, self._model.graph)):
                self._write(graph, self._additions)

    def settle(self) -> bool:
        """Forget what was computed with other numbers; return whether anything was."""
        was_stale, self._is_stale = self._is_stale, False
        if was_stale:
            self._model.session.forget()
        return was_stale

    def leave(self) -> None:
        """Forget the graphs, which are gone; what is to be added stays."""
        self._plain = self._derived = None
        self._additions = ()

    async def _load(self, plain: Graph) -> Graph:
        """Load the same program with what is added now."""
        found = [owner.addition() for owner in self._owners]
        additions = [each for each in found if each is not None]
        if not additions:
            self.leave()
            self.plain_passes = ()
            return plain
        program, passes = self._model.folder.program, passes_with(plain.passes, additions)
        constants = AddedConstants(additions)
        graph = await Graph.load(plain.device, program, constants, passes=passes, base=plain)
        self._plain, self._derived, self._additions = plain, graph, additions
        self.plain_passes = plain.passes
        return graph

    def _write(self, graph: Graph, additions: Sequence[Addition]) -> None:
        places = graph.constant_places()
        for addition in additions:
            for name, values in addition.numbers().items():
                data = np.ascontiguousarray(values, np.float32)
                for place in places.get(name, ()):
                    graph.device.write_buffer(place.buffer, data, place.offset)


def passes_with(passes: Sequence[Pass], additions: Sequence[Addition]) -> tuple[Pass, ...]:
    """Return a graph's passes and those of the additions, each in its place."""
    joining = [run for each in additions for run in each.joining]
    last = DEFAULT_PASSES[JOINING - 1]
    at = passes.index(last) + 1 if last in passes else len(passes)
    return (*passes[:at], *joining, *passes[at:])


class AddedConstants:
    """The constants that additions bring; the graph has all others already."""

    def __init__(self, additions: Sequence[Addition]) -> None:
        self._additions = additions

    def check(self, program: Program) -> None:
        """Do nothing: what passes add is none of the program's."""

    async def upload(self, device: Device, places: PlacesByName, meter: Meter) -> None:
        arrays: dict[str, Any] = {}
        for addition in self._additions:
            arrays |= {**addition.arrays, **addition.numbers()}
        for name, wanted in places.items():
            await asyncio.sleep(0)  # a caller may cancel
            data = np.asarray(arrays[name], np.float32)
            for place in wanted:
                flat = data.reshape(-1).view(np.uint8)
                if (found := place.of(0, flat.nbytes)) is not None:
                    skipped, taken, at = found
                    device.write_buffer(place.buffer, flat[skipped : skipped + taken], at)
