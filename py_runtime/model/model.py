"""A decoder ready to run: its graph on a device, its tokenizer, its chat template."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from py_runtime.base import notices
from py_runtime.base.cancel import CancelToken
from py_runtime.base.concurrency import aside, take_turns, until_cancelled
from py_runtime.base.errors import (
    AbortedError,
    ContextLengthError,
    GpuOutOfMemoryError,
    InpageError,
    NoModelError,
    RequestError,
    most_counted,
)
from py_runtime.base.html import as_html
from py_runtime.base.messages import message
from py_runtime.base.progress import LoadProgress, Meter
from py_runtime.base.request_texts import is_long
from py_runtime.base.short_texts import short
from py_runtime.base.sizes import in_words
from py_runtime.chat.request import ChatRequest
from py_runtime.devices.one_device import replacement
from py_runtime.devices.recovery import give_up
from py_runtime.folder import notes
from py_runtime.folder.file_names import CONFIG, TOKENIZER, TOKENIZER_CONFIG
from py_runtime.folder.layout import ModelFolder
from py_runtime.generation.device_tokens import DeviceTokens
from py_runtime.generation.generate import Generation, generate
from py_runtime.generation.messages import Message, parse_messages
from py_runtime.generation.options import GenerationOptions, negative_of, parse_options
from py_runtime.generation.overflow import beginning, fit_messages
from py_runtime.generation.pieces import Piece
from py_runtime.generation.session import DraftModel, PrefillProgress, Session, ignore_progress
from py_runtime.generation.sliding import FIRST_TOKENS, Slide
from py_runtime.gguf.tower import Tower
from py_runtime.gpu import CPU, Device
from py_runtime.grammar import Grammar, TokenTexts, grammar_for
from py_runtime.graph import Graph
from py_runtime.graph.profile import Profile
from py_runtime.graph.tuning import KernelChoice, choose_kernels
from py_runtime.model.adapters import Adapters
from py_runtime.model.cache_type import CacheType, check_cache_type, choose_cache_type
from py_runtime.model.changed_graph import ChangedGraph
from py_runtime.model.chat_prompts import ChatPrompt, ChatPrompts
from py_runtime.model.config import Config, read_json
from py_runtime.model.embed import embed, parse_inputs
from py_runtime.model.encoder import cannot_write
from py_runtime.model.encoder_folder import EncoderFolder
from py_runtime.model.head import Head
from py_runtime.model.image_encoder import ImageEncoder
from py_runtime.model.image_prompts import IMAGES, ImagePrompts
from py_runtime.model.other_prompt import OtherPrompt, Twin
from py_runtime.model.overlay import Overlaid
from py_runtime.model.seeing_folder import SeeingFolder
from py_runtime.model.stores import Store, open_folder
from py_runtime.program.decoder_form import check_context, decoder_sizes
from py_runtime.tokens import Tokenizer
from py_runtime.vision.picture import picture_of
from py_runtime.weights.constants import BesideConstants

WARM_UP_CHAT = [{"role": "user", "content": "Hello"}]
WARM_UP_TOKENS = 32


async def tokenizer_of(store: Store, folder: ModelFolder) -> Tokenizer:
    """Read the tokenizer of what a store has opened."""
    written = await store.read(folder, TOKENIZER)
    await take_turns()
    tokenizer = await aside(True, lambda: Tokenizer.from_json(written))
    await take_turns()
    return tokenizer


class Model(Overlaid):
    """A model; use `await Model.load(device, where)` with a URL in the page, a folder natively."""

    is_head = False

    def __init__(
        self,
        store: Store,
        folder: ModelFolder,
        graph: Graph,
        kernels: KernelChoice,
        caches: CacheType,
        tokenizer: Tokenizer,
        config: Config,
        tower: Tower | None = None,
    ) -> None:
        self.store = store
        self.folder = folder
        self.manifest = folder.manifest
        super().__init__(graph)
        self._device = graph.device  # or the one that the graph is being rebuilt on
        self.kernels = kernels
        self.caches = caches  # of keys and values
        self.tokenizer = tokenizer
        self.chat_template = config.chat_template
        self.end_tokens = config.end_tokens(tokenizer) | store.end_tokens
        name = self.manifest.name
        images = ImagePrompts(name, tower.sight, tokenizer) if tower is not None else None
        self.prompts = ChatPrompts(name, self.chat_template, tokenizer, images)
        self.image_rows = (
            ImageEncoder(tower, lambda: (self._graph.device, self.kernels.exactly().target))
            if tower is not None
            else None
        )
        self.max_chunk, self.vocabulary = decoder_sizes(folder.program)
        self.token_rows = store.token_rows(folder)
        self.draft: Model | None = None  # which proposes tokens, and goes when this one does
        self.head: Head | None = None  # which does without a draft
        self.head_fault = folder.head_fault  # why it goes without the one it has
        self.session = Session(self)
        self.changes = ChangedGraph(self)
        self.adapters = Adapters(self)
        self._twin: Twin | None = None  # made when two prompts are contrasted
        self._turn = asyncio.Lock()
        self._asking = 0  # answers that wait for their turn
        self._gone = False  # it was unloaded for good
        self._token_texts: TokenTexts | None = None

    @classmethod
    async def load(
        cls,
        device: Device,
        where: str | Store,
        progress: LoadProgress | None = None,
        cancel: CancelToken | None = None,
        compile_later: bool = False,
        kernels: str | None = None,
        kv: str | None = None,
    ) -> "Model":
        """Load everything, or raise and leave nothing on the GPU.

        With `compile_later` it returns while pipelines compile, and its first answer waits for
        them. `kernels` overrides the choice by device: "portable", "subgroups" or "memory" on a
        GPU. `kv` is the type of caches of keys and values: "f32", "f16", "q8" or "q4".
        """
        work = cls._load(device, where, Meter(progress), compile_later, kernels, kv)
        return await until_cancelled(work, cancel)

    @classmethod
    async def _load(
        cls,
        device: Device,
        where: str | Store,
        meter: Meter,
        compile_later: bool,
        wanted_kernels: str | None,
        wanted_caches: str | None,
    ) -> "Model":
        check_cache_type(wanted_caches)
        store, folder = await open_folder(device, where, meter)
        if isinstance(folder, EncoderFolder):
            raise cannot_write(folder.manifest.name)
        wanted = (wanted_kernels, wanted_caches)
        return await cls.load_opened(device, store, folder, meter, compile_later, *wanted)

    @classmethod
    async def load_opened(
        cls,
        device: Device,
        store: Store,
        folder: ModelFolder,
        meter: Meter,
        compile_later: bool = False,
        wanted_kernels: str | None = None,
        wanted_caches: str | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> "Model":
        """Load what a store has opened, with its tokenizer if that has been read already."""
        decoder_sizes(folder.program)
        check_context(folder.manifest.name, folder.manifest.context, folder.program)

        async def read_texts() -> tuple[Tokenizer, Config]:
            settings = Config(
                read_json(TOKENIZER_CONFIG, await store.read(folder, TOKENIZER_CONFIG)),
                read_json(CONFIG, await store.read(folder, CONFIG)),
            )
            return tokenizer or await tokenizer_of(store, folder), settings

        constants = BesideConstants(store.constants(folder), read_texts)
        kernels = await choose_kernels(device, notes, wanted_kernels, folder.program)
        usual = kernels.target.kv
        caches = choose_cache_type(folder, device, usual, wanted_caches)
        kernels = kernels.with_caches(caches.name)
        graph = await Graph.load(
            device, folder.program, constants, meter, kernels.target, compile_later=compile_later
        )
        tower = folder.tower if isinstance(folder, SeeingFolder) else None
        try:
            (texts,) = constants.found
            model = cls(store, folder, graph, kernels, caches, *texts, tower)
            await model._load_head(graph, compile_later)
        except BaseException:
            graph.unload()
            raise
        return model

    async def _load_head(self, base: Graph, compile_later: bool = False) -> None:
        """Load the head beside a graph; the model goes on alone where there is no room."""
        constants = self.store.constants(self.folder)
        try:
            self.head = await Head.load(self, self.folder, base, constants, compile_later)
        except GpuOutOfMemoryError as error:
            self.head, self.head_fault = None, str(error)

    async def rebuild(
        self,
        device: Device,
        progress: LoadProgress | None = None,
        cancel: CancelToken | None = None,
    ) -> None:
        """Rebuild the graph, on another device if need be; its state is empty again."""
        self._release()
        self._device = device
        self._graph = await until_cancelled(self._load_graph(device, Meter(progress)), cancel)
        if self.overlay is not None:
            await until_cancelled(self.overlay.load(self._graph), cancel)
        if self.draft is not None:
            await self._rebuild_draft(self.draft, device, cancel)

    async def _rebuild_draft(
        self, draft: "Model", device: Device, cancel: CancelToken | None
    ) -> None:
        """Rebuild the draft beside this model, which goes on alone where there is no room."""
        draft.session.forget()
        try:
            await draft.rebuild(device, cancel=cancel)
        except GpuOutOfMemoryError:
            self.draft = None
            names = {"name": self.manifest.name, "draft": draft.manifest.name}
            notices.post("memory", message("draft_left_out", **names))

    async def _load_graph(self, device: Device, meter: Meter) -> Graph:
        is_same_kind = self.kernels.target.cpu == (device.kind == CPU)
        wanted = self.kernels.wanted if is_same_kind else None
        program = self.folder.program
        kernels = await choose_kernels(device, notes, wanted, program)
        usual = kernels.target.kv
        self.caches = choose_cache_type(self.folder, device, usual, self.caches.wanted)
        self.kernels = kernels.with_caches(self.caches.name)
        constants = self.store.constants(self.folder)
        target = self.kernels.target
        passes = self.changes.plain_passes or self.passes
        graph = await Graph.load(device, program, constants, meter, target, passes)
        try:
            await self._load_head(graph)
        except BaseException:
            graph.unload()
            raise
        return await self.changes.onto(graph)

    def __repr__(self) -> str:
        return f"Model({self.manifest.name!r}, context={self.context}, {self.graph!r})"

    def _repr_html_(self) -> str:
        facts = [
            f"{self.manifest.parameters / 1e6:,.0f} M parameters"
            if self.manifest.parameters
            else "",
            self.manifest.quantisation,
            f"context of {self.context} tokens",
            f"{in_words(self.graph.memory.peak)} of memory",
        ]
        return as_html(self.manifest.name, facts)

    @property
    def context(self) -> int:
        return self.manifest.context

    @property
    def proposer(self) -> DraftModel | None:
        """Return what proposes its tokens: a draft, or its own head."""
        return self.head if self.draft is None else self.draft

    def chat_tokens(
        self, messages: Sequence[Mapping[str, Any]], asked: ChatRequest | None = None
    ) -> list[int]:
        """Return the prompt that asks for the assistant's next message."""
        return self.prompts.tokens(messages, asked or ChatRequest())

    def image_tokens(self, part: Mapping[str, Any]) -> int:
        """Return how many tokens an image takes, as a part of a message; RequestError if none."""
        where = "the image"
        if self.image_rows is None:
            raise RequestError(message("model_cannot_see", name=self.manifest.name), "messages")
        return self.prompts.image_tokens({IMAGES: [picture_of(part, where)]})

    # Generating --------------------------------------------------------------------------------

    async def chat(
        self,
        messages: Any,
        /,
        *,
        cancel: CancelToken | None = None,
        on_prefill: PrefillProgress = ignore_progress,
        **fields: Any,
    ) -> AsyncIterator[Piece]:
        """Yield the assistant's next message in pieces; fields are those of a chat completion."""
        asked = ChatRequest.take(fields)
        options = self._with_tools(parse_options(fields, self.vocabulary), asked)
        found = await aside(
            is_long([messages, asked.tools]), lambda: self._chat_prompt(messages, asked, options)
        )
        prompt, dropped, continued, kept = found
        other = self._other_chat(messages, asked, options)
        begun: str | Sequence[int] = options.continue_token_ids
        if continued is not None and not asked.forced:
            begun = begun or continued["content"]
        pieces = self._generate(prompt, options, cancel, on_prefill, dropped, other, begun, kept)
        reader = self.prompts.reader(asked, prompt, continued)
        async for piece in self.prompts.read(pieces, reader):
            yield piece

    def chat_prompt(self, messages: Any, fields: Mapping[str, Any]) -> ChatPrompt:
        """Return the prompt that a chat completion of these messages and fields begins with."""
        rest = dict(fields)
        asked = ChatRequest.take(rest)
        options = self._with_tools(parse_options(rest, self.vocabulary), asked)
        ids, dropped, *_ = self._chat_prompt(messages, asked, options)
        return ChatPrompt(ids, dropped, asked, options)

    def _chat_prompt(
        self, messages: Any, asked: ChatRequest, options: GenerationOptions
    ) -> tuple[list[int], int, Message | None, int]:
        """Return the prompt, how many messages were left out, and the one that it continues.

        Last, how many first tokens stay where others slide out of the context.
        """
        parsed = parse_messages(messages)
        continues = options.continue_final_message
        if continues and parsed[-1]["role"] != "assistant":
            raise RequestError(
                "continue_final_message needs an answer of the assistant's as the last message",
                "continue_final_message",
            )
        if options.continue_token_ids and asked.forced:
            raise RequestError(
                "continue_token_ids and a call that tool_choice requires exclude each other",
                "continue_token_ids",
            )
        most = most_counted(self.context)
        encode_chat = partial(
            self.prompts.tokens,
            asked=asked,
            allow_special=options.allow_special,
            continues=continues,
            begun=options.continue_token_ids,
            most=most,
        )
        encode_text = partial(self.tokenizer.encode, most=most)
        image_tokens = self.prompts.image_tokens
        prompt, dropped = fit_messages(
            parsed, encode_chat, encode_text, self.context, options, image_tokens
        )
        kept = beginning(parsed, encode_chat, prompt) if options.slides else 0
        return prompt, dropped, parsed[-1] if continues else None, kept

    def _other_chat(
        self, messages: Any, asked: ChatRequest, options: GenerationOptions
    ) -> list[int] | None:
        """Return the prompt to contrast with: the chat with the negative system prompt."""
        negative = negative_of(options)
        if negative is None:
            return None
        said = [dict(each) for each in parse_messages(messages) if each["role"] != "system"]
        system = [{"role": "system", "content": negative}] if negative else []
        most, continues = most_counted(self.context), options.continue_final_message
        return self.prompts.tokens(
            [*system, *said], asked, options.allow_special, continues, most=most
        )

    def _with_tools(self, options: GenerationOptions, asked: ChatRequest) -> GenerationOptions:
        """Adjust the options so that the text can be read as tool calls and reasoning."""
        forced = self.prompts.response_format(asked)
        if forced is not None:
            try:
                self._grammar(forced)
            except RequestError as error:
                fault = f"tools, of which tool_choice wants one called: {error}"
                raise RequestError(fault, "tools") from None
        return replace(
            options,
            response_format=forced or options.response_format,
            stop=(*options.stop, *self.prompts.stops(asked)),
            shown_tokens=self.prompts.shown_tokens(asked),
        )

    async def complete(
        self,
        prompt: str | Sequence[int],
        /,
        *,
        cancel: CancelToken | None = None,
        on_prefill: PrefillProgress = ignore_progress,
        **fields: Any,
    ) -> AsyncIterator[Piece]:
        """Yield the continuation of a text, or of its tokens."""
        options = parse_options(fields, self.vocabulary)
        if options.continue_final_message:
            raise RequestError(
                "continue_final_message is for chats: what complete() gives follows its prompt",
                "continue_final_message",
            )
        tokens = await aside(is_long(prompt), lambda: self.prompt_tokens(prompt))
        negative = negative_of(options)
        other = None if negative is None else self.prompt_tokens(negative or tokens[-1:])
        async for piece in self._generate(tokens, options, cancel, on_prefill, 0, other):
            yield piece

    async def greedy(self, prompt: Sequence[int], max_tokens: int) -> AsyncIterator[int]:
        """Yield the likeliest token again and again, past any end token."""
        async for piece in self.complete(
            prompt, temperature=0, max_tokens=max_tokens, ignore_eos=True
        ):
            for token in piece.token_ids:
                yield token

    async def prefill(self, tokens: Sequence[int]) -> np.ndarray:
        """Return the logits [V] after these tokens, all of them computed anew."""
        prompt = self.prompt_tokens(tokens)
        if len(prompt) > self.context:
            raise ContextLengthError(len(prompt), self.context)
        async with self._turn:
            with self.while_loaded():
                self.session.forget()
                return await self.session.logits_after(prompt, CancelToken())

    async def embed(
        self, given: Any, /, *, pooling: str = "mean", cancel: CancelToken | None = None
    ) -> np.ndarray:
        """Return texts, or their tokens, as vectors of length 1: f32 [N, W].

        `pooling` is "mean" or "last" of the hidden states.
        """
        prompts = await aside(is_long(given), lambda: parse_inputs(self, given))
        return await embed(self, prompts, pooling, cancel or CancelToken())

    async def profile(self, context: int) -> Profile:
        """Measure where the GPU's time goes while a token is decoded after `context` others.

        Their values do not matter, so none is computed; the session begins anew.
        """
        if not 0 <= context < self.context:
            raise ContextLengthError(context, self.context)
        async with self._turn:
            with self.while_loaded():
                self.session.forget()
                return await self.graph.profile(await self.session.inputs([0], context))

    async def _generate(
        self,
        prompt: list[int],
        options: GenerationOptions,
        cancel: CancelToken | None,
        on_prefill: PrefillProgress,
        dropped_messages: int = 0,
        other: list[int] | None = None,
        begun: str | Sequence[int] = "",
        kept: int = FIRST_TOKENS,
    ) -> AsyncIterator[Piece]:
        """Yield what follows the prompt; `begun` is what it ends with of the answer.

        The `kept` first tokens of the prompt stay where others slide out of the context. What is
        contrasted with another prompt does not slide, nor what a model that sees was shown.
        """
        can_slide = options.slides and other is None and self.image_rows is None
        slide = Slide(kept, self.context) if can_slide else None
        if slide is None:
            self._check_room(prompt)
            self._check_room(other or ())
            left = self.context - max(len(prompt), len(other or ()))
            room = min(options.max_tokens or left, left)
        else:
            left, room = 0, options.max_tokens or self.context
        options = options.seeded()
        grammar = self._grammar(options.response_format)
        if grammar is not None:
            grammar.begin(begun)
            grammar.require(room)
        contrasted = None if other is None else OtherPrompt(self._own_twin(), other)
        wanted = Generation(
            prompt,
            options,
            room,
            self.end_tokens,
            grammar,
            dropped_messages,
            contrasted,
            fills_context=room == left,
            slide=slide,
        )
        cancel = cancel or CancelToken()
        self._asking += 1
        try:  # one answer at a time: they share the cache
            await until_cancelled(self._turn.acquire(), cancel)
        except AbortedError:
            yield Piece(finish_reason="abort", usage=wanted.usage(cached_tokens=0))
            return
        finally:
            self._asking -= 1
        try:
            with self.while_loaded():
                if self.changes.settle() and self._twin is not None:
                    self._twin.session.forget()
                self.begin_answer(len(prompt))
                pieces = generate(self.session, self.tokenizer, wanted, cancel, on_prefill)
                async for piece in pieces:
                    yield piece
        finally:
            self._turn.release()

    def _own_twin(self) -> Twin:
        if self._twin is None:
            self._twin = Twin(self)
        return self._twin

    def _grammar(self, response_format: Any) -> Grammar | None:
        if response_format is None or response_format == {"type": "text"}:
            return None
        if self._token_texts is None:
            self._token_texts = TokenTexts(self.tokenizer, self.vocabulary, self.end_tokens)
        return grammar_for(response_format, self._token_texts)

    def prompt_tokens(self, prompt: Any) -> list[int]:
        if isinstance(prompt, str):
            prompt = self.tokenizer.encode(prompt, most=most_counted(self.context))
        if not isinstance(prompt, Sequence) or not prompt:
            raise RequestError("the prompt must be a text or a list of tokens, not empty", "prompt")
        for token in prompt:
            if not isinstance(token, int) or not 0 <= token < self.vocabulary:
                raise RequestError(
                    f"the prompt holds {short(token)}, not a token from 0 to {self.vocabulary - 1}",
                    "prompt_token_ids",
                )
        return list(prompt)

    def _check_room(self, prompt: Sequence[int]) -> None:
        if len(prompt) >= self.context:
            raise ContextLengthError(len(prompt), self.context)

    # Its life on the GPU ------------------------------------------------------------------------

    async def warm_up(self, cancel: CancelToken, with_template: bool = True) -> None:
        """Do what the first answer would otherwise wait for, and measure the prefill's pace.

        A request that comes meanwhile waits for pipelines only, which it needs as well. The work
        happens in a fresh session, which then becomes the model's without a trace of it.
        """
        async with self._turn:
            session = Session(self)
            try:
                await until_cancelled(session.compile(), cancel)
                if with_template and not self._asking:
                    self._warm_template()
                for step in (self._warm_prefill, self._warm_decode):
                    if self._asking:
                        return
                    await step(session, cancel)
            finally:
                self.session = session.begin_anew()
            if self.draft is not None and not self._asking:
                await self.draft.warm_up(cancel, with_template=False)

    def _warm_template(self) -> None:
        if self.chat_template is not None:
            self.tokenizer.encode(self.chat_template.render(WARM_UP_CHAT))

    async def _warm_prefill(self, session: Session, cancel: CancelToken) -> None:
        """Prefill twice: the first call still compiles, the second is measured."""
        for _ in range(2):
            session.forget()
            length = min(WARM_UP_TOKENS, self.context - 1)
            await session.logits_after([0] * length, cancel)

    async def _warm_decode(self, session: Session, cancel: CancelToken) -> None:
        await session.logits_after([*session.tokens, 0], cancel)
        settings = parse_options({"temperature": 0}, self.vocabulary).sampling
        if session.can_loop:
            async for _ in DeviceTokens(session, [0], settings, 2, cancel).batches(ignore_progress):
                pass

    def idle(self) -> asyncio.Lock:
        """Return a lock: `async with model.idle():` waits until no answer is being written."""
        return self._turn

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
        if self.draft is not None:
            self.draft.unload()
        self._release()

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

    def _release(self) -> None:
        if self._twin is not None:
            self._twin.unload()
        self.session.drop_loop()
        if self.head is not None:
            self.head.unload()
        if self.image_rows is not None:
            self.image_rows.unload()
        self.changes.leave()
        graph = self._graph
        while graph.base is not None:  # an op of the user's own is in it, or adapters
            graph = graph.base
        graph.unload()
