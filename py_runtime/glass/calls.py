"""Calls of a decoder whose values do not matter, for views that look at what a call does."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.glass.traffic import Span
from py_runtime.glass.workspace import looking
from py_runtime.graph import Graph
from py_runtime.model import Model

Progress = Callable[[int, int], None]  # (done, of so many); it may raise to end the work


def ignore(done: int, total: int) -> None:
    """Ignore the progress of work that nobody watches."""


@dataclass(frozen=True)
class GraphCall:
    """The inputs of one call of a graph."""

    inputs: list[Any]
    span: Span | None = None  # of a decoder's


async def calls_for(
    target: Model | Graph, tokens: int | Sequence[int], context: int, inputs: Sequence[Any] | None
) -> tuple[Graph, list[GraphCall]]:
    """Return a graph and the calls for so many tokens after so many others, in chunks."""
    if isinstance(target, Graph):
        if inputs is None:
            raise RequestError("a graph alone has no tokens: give its inputs=[…]")
        return target, [GraphCall(list(inputs))]
    ids = [0] * tokens if isinstance(tokens, int) else list(tokens)
    if not ids or context < 0 or context + len(ids) > target.context:
        raise RequestError(
            f"{len(ids)} tokens after {context} others do not fit: the context of "
            f"{target.manifest.name} is {target.context}, and there is one token at least"
        )
    calls = []
    for at in range(0, len(ids), target.max_chunk):
        chunk = ids[at : at + target.max_chunk]
        given = await target.session.inputs(chunk, context + at)
        calls.append(GraphCall(given, Span(len(chunk), context + at)))
    return target.graph, calls


@asynccontextmanager
async def running(
    target: Model | Graph, tokens: int | Sequence[int], context: int, inputs: Sequence[Any] | None
) -> AsyncIterator[tuple[Graph, list[GraphCall]]]:
    """Yield the same for whoever runs them.

    A model answers nobody meanwhile; its cache is as it was afterwards.
    """
    if isinstance(target, Graph):
        yield await calls_for(target, tokens, context, inputs)
        return
    async with looking(target, CancelToken()):
        await target.session.compile()
        yield await calls_for(target, tokens, context, inputs)
