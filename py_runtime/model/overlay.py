"""A graph that computes in place of a model's own, whose weights and caches it shares."""

from typing import Protocol

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

    @property
    def first_edited(self) -> int:
        """Return the first position at which caches may differ from the model's own."""
