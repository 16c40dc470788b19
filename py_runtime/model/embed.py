"""Embeddings: the hidden states that a decoder's head would read, pooled."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import ContextLengthError, InputError, RequestError
from py_runtime.generation.session import Session
from py_runtime.graph import Graph
from py_runtime.graph.probes import run_probed
from py_runtime.program import DoubleValue, Program, op_names

NORM = "et_vk.rms_norm."
POOLINGS = ("mean", "last")
TINY = 1e-12


class Embedder(Protocol):
    """The parts of a model that embedding needs."""

    session: Session

    @property
    def graph(self) -> Graph: ...

    @property
    def context(self) -> int: ...

    def prompt_tokens(self, prompt: Any) -> list[int]: ...

    def idle(self) -> asyncio.Lock: ...

    def while_loaded(self) -> AbstractContextManager[None]: ...


@dataclass(frozen=True)
class HiddenStates:
    """The hidden states before the final norm, which the program applies to the last one only."""

    rows: int  # [1, S, W]
    weight: int  # [W], the norm's
    epsilon: float

    @classmethod
    def of(cls, program: Program) -> "HiddenStates":
        makers = {value_id: call for call in program.ops for value_id in program.writes(call)}
        norms = [call for call in program.ops if call.name.startswith(NORM)]
        chosen = makers.get(norms[-1].args[0]) if norms else None
        if chosen is None or chosen.name != op_names.SELECT:
            raise InputError(
                f"{program.name} has no hidden states that could be read: it cannot embed texts"
            )
        _, weight, epsilon, *_ = norms[-1].args
        value = program.values[epsilon]
        assert isinstance(value, DoubleValue), "the op's own check"
        return cls(chosen.args[0], weight, value.value)

    async def read(self, graph: Graph, inputs: list[np.ndarray]) -> np.ndarray:
        """Return the hidden states after the norm: f64 [S, W]."""
        found = await run_probed(graph, inputs, [self.rows, self.weight])
        hidden, weight = found[self.rows][0], found[self.weight]
        mean_square = np.square(hidden, dtype=np.float64).mean(axis=-1, keepdims=True)
        return np.asarray(hidden / np.sqrt(mean_square + self.epsilon) * weight)


async def embed(
    model: Embedder, prompts: Sequence[list[int]], pooling: str, cancel: CancelToken
) -> np.ndarray:
    """Return f32 [prompts, W], each of length 1."""
    hidden = hidden_states(model, pooling)
    for prompt in prompts:
        if len(prompt) > model.context:
            raise ContextLengthError(len(prompt), model.context)
    async with model.idle():
        with model.while_loaded():
            vectors = [await pooled(model, hidden, each, pooling, cancel) for each in prompts]
    return np.stack(vectors)


def hidden_states(model: Embedder, pooling: str) -> HiddenStates:
    """Return what embeddings of the model are read from, or raise: what cannot be is told first."""
    if pooling not in POOLINGS:
        raise RequestError(f"pooling must be one of {', '.join(POOLINGS)}", "pooling")
    return HiddenStates.of(model.graph.program)


async def pooled(
    model: Embedder, hidden: HiddenStates, prompt: list[int], pooling: str, cancel: CancelToken
) -> np.ndarray:
    """Return a prompt's vector: f32 [W], of length 1. The caller holds the model's lock."""
    rows: list[np.ndarray] = []

    async def run(inputs: list[np.ndarray]) -> list[np.ndarray]:
        if inputs[1][0] == 0:
            rows.clear()  # it may not be the first time: devices are lost
        rows.append(await hidden.read(model.graph, inputs))
        return rows

    await model.session.compute_each(prompt, cancel, run)
    whole = np.concatenate(rows)  # [S, W]
    vector = whole[-1] if pooling == "last" else whole.mean(axis=0)
    return of_length_1(vector[None])[0]


def of_length_1(vectors: np.ndarray) -> np.ndarray:
    """Return vectors [N, W] in f32, each of length 1."""
    exact = vectors.astype(np.float64)
    lengths = np.maximum(np.linalg.norm(exact, axis=1, keepdims=True), TINY)
    return np.asarray(exact / lengths, np.float32)


def parse_inputs(model: Embedder, given: Any) -> list[list[int]]:
    """Parse a text, the tokens of one, or a list of either."""
    inputs = given_inputs(given)
    try:
        return [model.prompt_tokens(each) for each in inputs]
    except RequestError as error:
        raise RequestError(f"input: {error}", "input") from None


def given_inputs(given: Any) -> Sequence[Any]:
    """Return a list of texts, or of their tokens, where one of either was given, too."""
    is_one = isinstance(given, str) or (
        isinstance(given, Sequence) and len(given) > 0 and isinstance(given[0], int)
    )
    inputs = [given] if is_one else given
    if not isinstance(inputs, Sequence) or not inputs:
        raise RequestError("input must be a text, tokens, or a list of these, not empty", "input")
    return inputs
