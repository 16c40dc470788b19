"""The graphs that looking into a model takes; made when they are wanted, freed with the model."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from typing import TypeVar
from weakref import WeakKeyDictionary

from py_runtime.base.cancel import CancelToken
from py_runtime.base.concurrency import until_cancelled
from py_runtime.glass.anatomy import Anatomy
from py_runtime.glass.points import points_of
from py_runtime.glass.slots import FOREVER
from py_runtime.glass.unembed import Unembed
from py_runtime.graph import Graph
from py_runtime.model import Model
from py_runtime.program import Program

MAX_GRAPHS = 4  # that are kept: the one used last is likely to be wanted again
Holder = TypeVar("Holder")


class Workspace:
    """Anatomy and graphs for looking into a model; ask `Workspace.of(model)` for them."""

    def __init__(self, model: Model) -> None:
        self.anatomy = Anatomy.of(model.folder.program)
        self.points = points_of(self.anatomy)
        self._model_graph: Graph | None = None  # which all others are derived from
        self._kept: dict[Hashable, tuple[Graph, object]] = {}

    @classmethod
    def of(cls, model: Model) -> "Workspace":
        if model not in _spaces:
            _spaces[model] = cls(model)
        return _spaces[model]

    def layers_with(self, hook: str) -> list[int]:
        """Return the layers that have a hook, by the end of its name."""
        own = [point for name, point in self.points.items() if name.endswith(f".{hook}")]
        return [point.layer for point in own if point.layer is not None]

    def program(self, model: Model) -> Program:
        """Return the model's program as it is before passes, with what steers it."""
        overlay = model.overlay
        return model.folder.program if overlay is None else overlay.program

    async def unembed(self, model: Model) -> Unembed:
        async def load() -> tuple[Graph, Unembed]:
            found = await Unembed.load(model.graph, self.anatomy)
            return found.graph, found

        return await self.kept(model, "unembed", load)

    async def kept(
        self, model: Model, key: Hashable, load: Callable[[], Awaitable[tuple[Graph, Holder]]]
    ) -> Holder:
        """Return what was loaded under this key, or load it; it lives as long as the base does."""
        if self._model_graph is not model.graph:  # rebuilt, or another one since
            self.clear()
            self._model_graph = model.graph
        if key not in self._kept:
            while len(self._kept) >= MAX_GRAPHS:
                graph, _ = self._kept.pop(next(iter(self._kept)))
                graph.unload()
            self._kept[key] = await load()
        else:
            self._kept[key] = self._kept.pop(key)  # the last one used
        found: Holder = self._kept[key][1]  # type: ignore[assignment]
        return found

    def clear(self) -> None:
        """Free all of it."""
        for graph, _ in self._kept.values():
            graph.unload()
        self._kept.clear()


_spaces: WeakKeyDictionary[Model, Workspace] = WeakKeyDictionary()


async def close(model: Model) -> None:
    """Free what looking into a model has left on the device; the next look makes it anew."""
    async with model.idle():
        if model in _spaces:
            _spaces.pop(model).clear()


@asynccontextmanager
async def looking(
    model: Model, cancel: CancelToken, prompt: int | None = None
) -> AsyncIterator[None]:
    """Hold the model while nothing is being written, and leave its session as it was.

    What steers the model takes the tokens behind `prompt` for an answer; without it, none.
    """
    lock: asyncio.Lock = model.idle()
    await until_cancelled(_acquire(lock), cancel)
    try:
        with model.while_loaded():
            async with model.session.set_aside():
                if model.overlay is not None:
                    model.overlay.reach(FOREVER if prompt is None else prompt)
                yield
            if model.overlay is not None:
                model.overlay.reach()
    finally:
        lock.release()


async def _acquire(lock: asyncio.Lock) -> None:
    await lock.acquire()
