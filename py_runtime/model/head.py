"""The head that a model brings along, as what proposes its tokens.

It is a decoder of its own beside the model's graph, with weights of that graph and the ends that it
leaves (py_runtime/decoder/head.py), and goes with it.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from py_runtime.folder.layout import ModelFolder
from py_runtime.generation.session import Session, TokenRows
from py_runtime.graph import Graph
from py_runtime.program.decoder_form import decoder_sizes
from py_runtime.weights.constants import ConstantSource


class HeadedModel(Protocol):
    """The parts of a model that its head needs."""

    @property
    def context(self) -> int: ...

    async def recover(self) -> None: ...

    async def give_up_device(self) -> None: ...


class Head:
    """A head with its session; use `await Head.load(…)`."""

    is_head = True

    def __init__(self, model: HeadedModel, graph: Graph) -> None:
        self.graph = graph
        self.context = model.context
        self.max_chunk, self.vocabulary = decoder_sizes(graph.program)
        self.image_rows: None = None
        self.token_rows: TokenRows | None = None
        self.proposer: None = None
        self.recover, self.give_up_device = model.recover, model.give_up_device
        self.session = Session(self, in_one=True)

    @classmethod
    async def load(
        cls,
        model: HeadedModel,
        folder: ModelFolder,
        base: Graph,
        constants: ConstantSource | Mapping[str, Any],
        compile_later: bool,
    ) -> "Head | None":
        """Load the head of a model, whose plain graph is the base; None: it has none."""
        if folder.head is None:
            return None
        graph = await Graph.load(
            base.device, folder.head, constants, compile_later=compile_later, base=base
        )
        graph.lock = asyncio.Lock()  # it computes while an answer holds the model's
        return cls(model, graph)

    def __repr__(self) -> str:
        return f"Head({self.graph!r})"

    def unload(self) -> None:
        """Free its memory; its graph may have gone with the model's."""
        self.session.drop_loop()
        self.graph.unload()
