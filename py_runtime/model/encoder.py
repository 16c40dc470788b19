"""A text encoder ready to run: its graph on a device, its tokenizer, and how it asks to be used."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.base.concurrency import aside, until_cancelled
from py_runtime.base.errors import (
    ContextLengthError,
    InpageError,
    NoModelError,
    RequestError,
    most_counted,
)
from py_runtime.base.html import as_html
from py_runtime.base.messages import message
from py_runtime.base.model_errors import ModelError
from py_runtime.base.progress import LoadProgress, Meter
from py_runtime.base.request_texts import is_long
from py_runtime.base.short_texts import short
from py_runtime.base.sizes import in_words
from py_runtime.devices.one_device import replacement
from py_runtime.devices.recovery import Recovery, give_up
from py_runtime.encoder.encoding import CLS
from py_runtime.folder import notes
from py_runtime.folder.file_names import TOKENIZER
from py_runtime.generation.pieces import Piece
from py_runtime.gpu import CPU, Device
from py_runtime.graph import Graph
from py_runtime.graph.tuning import KernelChoice, choose_kernels
from py_runtime.model.embed import given_inputs, of_length_1
from py_runtime.model.encoder_folder import EncoderFolder
from py_runtime.model.stores import Store
from py_runtime.tokens import Tokenizer

# The longest of the texts that are encoded together: so much of the shortest, and so many tokens.
PADDING, PADDED = 1.25, 8


@dataclass(frozen=True)
class Pair:
    """A query and a text as one list of tokens, and where the text begins."""

    tokens: list[int]
    second: int


class Encoder:
    """A model that makes vectors of texts, and writes none; `load_model` opens one."""

    chat_template = None

    def __init__(
        self,
        store: Store,
        folder: EncoderFolder,
        graph: Graph,
        kernels: KernelChoice,
        tokenizer: Tokenizer,
    ) -> None:
        self.store = store
        self.folder = folder
        self.manifest = folder.manifest
        self.encoding = folder.encoding
        self.kernels = kernels
        self.tokenizer = tokenizer
        self.device = Recovery(self.recover, self.give_up_device)
        self._graph = graph
        self._device = graph.device  # or the one that the graph is being rebuilt on
        self._turn = asyncio.Lock()
        self._gone = False  # it was unloaded for good

    @classmethod
    async def load(
        cls,
        device: Device,
        store: Store,
        folder: EncoderFolder,
        meter: Meter,
        compile_later: bool = False,
        wanted_kernels: str | None = None,
    ) -> "Encoder":
        """Load everything, or raise and leave nothing on the device."""
        written = await store.read(folder, TOKENIZER)
        tokenizer = await aside(True, lambda: Tokenizer.from_json(written))
        count, rows = tokenizer.vocabulary_size, folder.config.vocabulary
        if count > rows:
            name = folder.manifest.name
            raise ModelError(f"{name} has {count} tokens, but embeddings of {rows}")
        kernels = (await choose_kernels(device, notes, wanted_kernels)).exactly()
        constants = store.constants(folder)
        graph = await Graph.load(
            device, folder.program, constants, meter, kernels.target, compile_later=compile_later
        )
        return cls(store, folder, graph, kernels, tokenizer)

    def __repr__(self) -> str:
        return f"Encoder({self.manifest.name!r}, context={self.context}, {self.graph!r})"

    def _repr_html_(self) -> str:
        facts = [
            "encodes texts",
            f"{self.manifest.parameters / 1e6:,.0f} M parameters",
            self.manifest.quantisation,
            f"context of {self.context} tokens",
            f"{in_words(self.graph.memory.peak)} of memory",
        ]
        return as_html(self.manifest.name, facts)

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def context(self) -> int:
        """Return the most tokens of a text, those around it included."""
        return self.manifest.context

    # Encoding ----------------------------------------------------------------------------------

    async def embed(
        self,
        given: Any,
        /,
        *,
        pooling: str | None = None,
        prompt_name: str | None = None,
        cancel: CancelToken | None = None,
    ) -> np.ndarray:
        """Return texts, or their tokens, as vectors: f32 [N, W].

        The model's own files say how hidden states are pooled, whether vectors have length 1, and
        which prompt stands before a text; `pooling` and `prompt_name` choose another.
        """
        inputs = await aside(is_long(given), lambda: self.parse_inputs(given, prompt_name))
        return await self.vectors(inputs, pooling, cancel or CancelToken())

    def parse_inputs(self, given: Any, prompt_name: object = None) -> list[list[int]]:
        """Return the tokens of each text, with the prompt before it; tokens stay as they are."""
        prompt = self.encoding.prompt(prompt_name)
        return [self._tokens(each, prompt) for each in given_inputs(given)]

    def _tokens(self, given: Any, prompt: str) -> list[int]:
        if isinstance(given, str) and given:
            return self.tokenizer.encode(prompt + given, most=most_counted(self.context))
        if not isinstance(given, Sequence) or not given:
            raise RequestError("input must hold texts or lists of tokens, not empty", "input")
        count = self.folder.config.vocabulary
        for token in given:
            if type(token) is not int or not 0 <= token < count:
                fault = f"input holds {short(token)}, not a token from 0 to {count - 1}"
                raise RequestError(fault, "input")
        return list(given)

    async def vectors(
        self,
        inputs: Sequence[list[int]],
        pooling: str | None,
        cancel: CancelToken,
        pairs: Sequence["Pair"] = (),
    ) -> np.ndarray:
        """Return a vector for each list of tokens, several of about one length at a time.

        Inputs may be `pairs`, whose vectors are scores.
        """
        if self.scores_pairs and not pairs:
            raise RequestError(message("reranker_cannot_embed", name=self.manifest.name), "model")
        self.encoding.shares(1, pooling)  # before anything is computed
        for tokens in inputs:
            if len(tokens) > self.context:
                raise ContextLengthError(len(tokens), self.context)
        found: dict[int, np.ndarray] = {}
        async with self._turn:
            with self.while_loaded():
                for places in batches([len(tokens) for tokens in inputs], self.folder.config.texts):
                    together = [inputs[at] for at in places]
                    seconds = [pairs[at].second for at in places] if pairs else []
                    run = self._run(together, pooling, cancel, seconds)
                    found |= zip(places, await run, strict=True)
        pooled = np.stack([found[at] for at in range(len(inputs))])
        is_normalised = self.encoding.is_normalised and not pairs
        return of_length_1(pooled) if is_normalised else pooled

    # Pairs -------------------------------------------------------------------------------------

    @property
    def scores_pairs(self) -> bool:
        """Tell a reranker, which reads a query with a text, from what makes vectors of texts."""
        return self.folder.config.scores

    async def scores(
        self, query: str, texts: Sequence[str], cancel: CancelToken | None = None
    ) -> tuple[np.ndarray, int]:
        """Return how well each text answers the query, from 0 to 1, and the pairs' tokens."""
        if not self.scores_pairs:
            raise RequestError(message("encoder_cannot_rerank", name=self.manifest.name), "model")
        pairs = [self.pair(query, text) for text in texts]
        inputs = [pair.tokens for pair in pairs]
        found = await self.vectors(inputs, CLS, cancel or CancelToken(), pairs)
        scores = np.asarray(1 / (1 + np.exp(-found[:, 0].astype(np.float64))))
        return scores, sum(map(len, inputs))

    def pair(self, query: str, text: str) -> "Pair":
        """Return the tokens of a query and a text, as the model was trained to read them."""
        first, second = (
            self.tokenizer.encode(each, most=most_counted(self.context)) for each in (query, text)
        )
        gap = first[-1:] * (self.folder.config.family.pair_gap - 1)
        tokens = [*first, *gap, *second[1:]]
        return Pair(tokens, len(first) + len(gap))

    async def _run(
        self,
        texts: list[list[int]],
        pooling: str | None,
        cancel: CancelToken,
        seconds: Sequence[int],
    ) -> np.ndarray:
        """Return the vectors [B, W] of as many texts as are encoded at once."""
        cancel.check()
        inputs = self._inputs(texts, pooling, seconds)
        (found,) = await self.device.survive(
            lambda: until_cancelled(self.graph.run(inputs), cancel), cancel
        )
        return np.asarray(found[:, 0])

    def _inputs(
        self, texts: list[list[int]], pooling: str | None, seconds: Sequence[int]
    ) -> list[np.ndarray]:
        """Return the graph's inputs: texts side by side, padded to the longest.

        `seconds` say where the second text of each pair begins.
        """
        size = (len(texts), max(map(len, texts)))
        tokens = np.zeros(size, np.int64)
        visible, shares = np.zeros(size, bool), np.zeros(size, np.float32)
        for row, text in enumerate(texts):
            tokens[row, : len(text)] = text
            visible[row, : len(text)] = True
            shares[row, : len(text)] = self.encoding.shares(len(text), pooling)
        types = np.zeros(size, np.int64)
        for row, begin in enumerate(seconds if self.folder.config.types > 1 else ()):
            types[row, begin : len(texts[row])] = 1
        given = [types] if self.folder.config.types else []
        return [tokens, *given, visible[:, None, None, :], shares[:, None, :]]

    # What it does not do -----------------------------------------------------------------------

    def chat(self, messages: Any, /, **fields: Any) -> AsyncIterator[Piece]:
        """Raise RequestError: it writes no text."""
        raise cannot_write(self.manifest.name)

    def complete(self, prompt: Any, /, **fields: Any) -> AsyncIterator[Piece]:
        """Raise RequestError: it writes no text."""
        raise cannot_write(self.manifest.name)

    # Its life on the device --------------------------------------------------------------------

    async def warm_up(self, cancel: CancelToken, with_template: bool = True) -> None:
        """Wait for the pipelines, so that the first text need not."""
        async with self._turn:
            await until_cancelled(self.device.attempt(self.graph.compiled()), cancel)

    def idle(self) -> asyncio.Lock:
        """Return a lock: `async with encoder.idle():` waits until nothing is computed."""
        return self._turn

    async def rebuild(
        self,
        device: Device,
        progress: LoadProgress | None = None,
        cancel: CancelToken | None = None,
    ) -> None:
        """Rebuild the graph, on another device if need be."""
        self._graph.unload()
        self._device = device
        self._graph = await until_cancelled(self._load_graph(device, Meter(progress)), cancel)

    async def _load_graph(self, device: Device, meter: Meter) -> Graph:
        is_same_kind = self.kernels.target.cpu == (device.kind == CPU)
        wanted = self.kernels.wanted if is_same_kind else None
        self.kernels = (await choose_kernels(device, notes, wanted)).exactly()
        constants = self.store.constants(self.folder)
        return await Graph.load(device, self.folder.program, constants, meter, self.kernels.target)

    async def recover(self) -> None:
        """Replace a lost device, shared by all models on it, unless this one was unloaded since."""
        with self.while_loaded():
            await self.rebuild(await replacement(self._device))

    async def give_up_device(self) -> None:
        """Go on upon the CPU, in place of a GPU that was lost too often."""
        with self.while_loaded():
            await self.rebuild(await give_up(self._device))

    def unload(self) -> None:
        self._gone = True
        self._graph.unload()

    @contextmanager
    def while_loaded(self) -> Iterator[None]:
        """Raise a clear error for work that waited or ran when the model was unloaded."""
        if self._gone:
            raise NoModelError
        try:
            yield
        except InpageError:
            if self._gone:
                raise NoModelError from None
            raise


def batches(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Yield the places of texts to encode together: up to so many, of about one length."""
    places: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if places:
            is_far = lengths[place] > PADDING * lengths[places[0]] + PADDED
            if is_far or len(places) == most:
                yield places
                places = []
        places.append(place)
    if places:
        yield places


def cannot_write(name: str) -> RequestError:
    """Return the error of a request for text from a model that encodes texts."""
    return RequestError(message("encoder_cannot_write", name=name), "model")
