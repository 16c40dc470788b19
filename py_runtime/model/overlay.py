"""A graph that computes in place of a model's own, whose weights and caches it shares."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from py_runtime.generation.session import Session
from py_runtime.graph import Graph
from py_runtime.program import Program


class Overlay(Protocol):
    """A variant of the model's graph, as py_runtime/glass/steering.py has one."""

    graph: Graph
    program: Program  # of it, before passes

    async def load(self, base: Graph) -> None:
        """Build the graph, from the model's own, which was perhaps rebuilt."""

    def begin(self, prompt: int) -> int:
        """Begin an answer behind so many tokens; return how many positions held still count."""

    def reach(self, border: int | None = None) -> None:
        """Let what holds for prompts end there, and what holds for answers begin.

        None: where the last answer began.
        """

    @property
    def first_edited(self) -> int:
        """Return the first position at which caches may differ from the model's own."""


class Overlaid:
    """A model's part that knows which graph computes."""

    session: Session

    def __init__(self, graph: Graph) -> None:
        self.overlay: Overlay | None = None
        self.passes = graph.passes  # of each graph that is built
        self._graph = graph  # the model's own
        self._is_plain = False  # what lies over it is set aside

    @property
    def graph(self) -> Graph:
        """Return the graph that computes: the model's own, or one that lies over it."""
        return self._graph if self.overlay is None or self._is_plain else self.overlay.graph

    @property
    def own_graph(self) -> Graph:
        """Return the graph that nothing lies over, with what changes it for good."""
        return self._graph

    def take_graph(self, graph: Graph) -> None:
        """Run another graph of the same program: one that stands on the present one, or that again.

        The caller holds `idle()`.
        """
        self.session.drop_loop()
        self.session.forget()
        self._graph, self.passes = graph, graph.passes

    async def put_over(self, overlay: Overlay | None) -> None:
        """Compute with another graph from now on, or with the model's own.

        The caller holds idle(). What caches hold is kept as far as it is the same in both.
        """
        if overlay is not None:
            await overlay.load(self._graph)
        before, self.overlay = self.overlay, overlay
        self.session.drop_loop()
        for changed in filter(None, (before, overlay)):
            self.session.cut_back(changed.first_edited)
        if before is not None:
            before.graph.unload()

    def begin_answer(self, prompt: int) -> None:
        """Forget what caches hold that is not as it would be behind this prompt."""
        if self.overlay is not None:
            self.session.cut_back(self.overlay.begin(prompt))

    @contextmanager
    def plainly(self) -> Iterator[None]:
        """Set aside what lies over the model's own graph; the session begins anew."""
        if self.overlay is None:
            yield
            return
        self._set_plain(True)
        try:
            yield
        finally:
            self._set_plain(False)

    def _set_plain(self, is_plain: bool) -> None:
        self.session.forget()
        self.session.drop_loop()
        self._is_plain = is_plain
