"""Another prompt that is computed beside an answer's own, with caches of its own."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.generation.session import ImageRows, Session, TokenRows
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.graph import Graph
from py_runtime.model.changed_graph import ChangedGraph
from py_runtime.passes import Pass
from py_runtime.program import Program, TensorValue


class TwinnedModel(Protocol):
    """The parts of a model that a second session needs."""

    changes: ChangedGraph
    max_chunk: int
    token_rows: TokenRows | None

    @property
    def context(self) -> int: ...

    @property
    def image_rows(self) -> ImageRows | None: ...

    @property
    def graph(self) -> Graph: ...

    async def recover(self) -> None: ...

    async def give_up_device(self) -> None: ...


class Twin:
    """A second session over a model's weights; its states are its own."""

    def __init__(self, model: TwinnedModel) -> None:
        self._model = model
        self._of: Graph | None = None  # the model's graph that this one belongs to
        self.graph: Graph
        self.max_chunk, self.context = model.max_chunk, model.context
        self.image_rows, self.token_rows = model.image_rows, model.token_rows
        self.proposer: None = None  # the host chooses its tokens
        self.session = Session(self)

    async def logits_after(self, tokens: Sequence[int], cancel: CancelToken) -> np.ndarray:
        """Return the logits [V] after these tokens, of which it keeps what it can."""
        await self._follow()
        return await self.session.logits_after(tokens, cancel)

    async def recover(self) -> None:
        if self._of is self._model.graph:
            await self._model.recover()
        await self._follow()

    async def give_up_device(self) -> None:
        if self._of is self._model.graph:
            await self._model.give_up_device()
        await self._follow()

    async def _follow(self) -> None:
        """Build the graph anew if the model has another one since."""
        own = self._model.graph
        if self._of is own:
            return
        passes: tuple[Pass, ...] = (*own.passes, rename_states)
        constants = self._model.changes.source
        self.graph = await Graph.load(own.device, own.written, constants, passes=passes, base=own)
        self.session.drop_loop()
        self.session.forget()
        self._of = own

    def unload(self) -> None:
        """Free its caches; a device that was lost has none."""
        if self._of is not None:
            self.graph.unload()
        self._of = None


def rename_states(program: Program, target: KernelTarget) -> Program:
    """Give states other names, so that no graph shares them with its base."""
    values = tuple(
        replace(v, name=f"{v.name} of the other prompt")
        if isinstance(v, TensorValue) and v.state
        else v
        for v in program.values
    )
    return replace(program, values=values)


class OtherPrompt:
    """The prompt that a sampler contrasts an answer's own with."""

    def __init__(self, twin: Twin, prompt: Sequence[int]) -> None:
        self._twin = twin
        self.prompt = list(prompt)

    async def logits_after(self, answer: list[int], cancel: CancelToken) -> np.ndarray:
        """Return the logits [V] after the prompt and these tokens of the answer."""
        return await self._twin.logits_after([*self.prompt, *answer], cancel)
