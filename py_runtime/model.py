"""A decoder ready to run: its graph on the GPU, its tokenizer, its chat template."""

import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

import numpy as np

from py_runtime.chat_template import ChatTemplate
from py_runtime.errors import InputError
from py_runtime.folder.errors import ModelError
from py_runtime.folder.manifest import Manifest
from py_runtime.folder.strict_json import parse_strict_json
from py_runtime.gpu import Device
from py_runtime.graph import Graph
from py_runtime.program import Program, TensorValue
from py_runtime.tokens import Tokenizer

if sys.platform == "emscripten":
    from py_runtime.folder.urls import UrlStore as Store
else:
    from py_runtime.folder.files import FolderStore as Store

NOT_HERE = "use a browser or a graphics processor with more, or a smaller --max-seq-len"
TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"


class Model:
    """Use `await Model.load(device, where)`: a URL in the page, a folder natively."""

    def __init__(
        self,
        manifest: Manifest,
        graph: Graph,
        tokenizer: Tokenizer,
        chat_template: ChatTemplate | None,
        max_chunk: int,
    ) -> None:
        self.manifest = manifest
        self.graph = graph
        self.tokenizer = tokenizer
        self.chat_template = chat_template
        self.max_chunk = max_chunk  # tokens in one call of the graph

    @classmethod
    async def load(cls, device: Device, where: str) -> "Model":
        store = Store(where)
        folder = await store.open()
        check_requirements(folder.manifest, device)
        max_chunk = _tokens_per_call(folder.program)
        tokenizer = Tokenizer.from_json(await store.read(folder, TOKENIZER))
        config = _read_config(await store.read(folder, TOKENIZER_CONFIG))
        template = ChatTemplate.from_config(config) if config.get("chat_template") else None
        graph = await Graph.load(device, folder.program, store.constants(folder))
        return cls(folder.manifest, graph, tokenizer, template, max_chunk)

    @property
    def context(self) -> int:
        return self.manifest.context

    def chat_tokens(self, messages: Sequence[dict[str, str]]) -> list[int]:
        """The prompt that asks for the assistant's next message."""
        if self.chat_template is None:
            raise InputError(f"{self.manifest.name} has no chat template")
        text = self.chat_template.render(list(messages), add_generation_prompt=True)
        return self.tokenizer.encode(text, add_special_tokens=False)

    async def prefill(self, tokens: Sequence[int], start: int = 0) -> np.ndarray:
        """Puts the tokens into the cache from position `start`; gives the logits after the last."""
        self._check_room(len(tokens), start)
        for at in range(0, len(tokens), self.max_chunk):
            chunk = np.array([tokens[at : at + self.max_chunk]], np.int64)
            is_last = at + self.max_chunk >= len(tokens)
            inputs = [chunk, np.array([start + at])]
            results = await self.graph.run(inputs, [0] if is_last else [])
        logits: np.ndarray = results[0][0]
        return logits

    async def greedy(self, prompt: Sequence[int], most_tokens: int) -> AsyncIterator[int]:
        """The likeliest token, again and again; it is the caller who stops at an end token."""
        self._check_room(len(prompt) + most_tokens, 0)
        logits = await self.prefill(prompt)
        for step in range(most_tokens):
            token = int(logits.argmax())
            yield token
            if step + 1 < most_tokens:
                logits = await self.prefill([token], len(prompt) + step)

    def _check_room(self, tokens: int, start: int) -> None:
        if tokens < 1:
            raise InputError("a prompt has at least one token")
        if start + tokens > self.context:
            raise InputError(
                f"{tokens} tokens from position {start} end at {start + tokens}, past the "
                f"context of {self.context}"
            )

    def unload(self) -> None:
        self.graph.unload()


def check_requirements(manifest: Manifest, device: Device) -> None:
    """Refuses before anything large is fetched."""
    for feature in manifest.requires.features:
        if feature not in device.features:
            raise ModelError(f"{manifest.name} needs the GPU feature '{feature}'", NOT_HERE)
    for limit, needed in manifest.requires.limits.items():
        has = device.limits.get(limit, 0)
        if has < needed:
            fault = f"{manifest.name} needs {limit} {needed}; this device has {has}"
            raise ModelError(fault, NOT_HERE)


def _tokens_per_call(program: Program) -> int:
    """A decoder takes tokens [1, S] and a position [1]; anything else cannot be chatted with."""
    kinds = [program.values[entry.value] for entry in program.inputs]
    if len(kinds) != 2 or not all(isinstance(kind, TensorValue) for kind in kinds):
        raise ModelError(f"{program.name} is no decoder: its inputs are no tokens and position")
    ranks = [len(kind.dims) for kind in kinds if isinstance(kind, TensorValue)]
    if ranks != [2, 1]:
        raise ModelError(f"{program.name} is no decoder: its inputs have the ranks {ranks}")
    tokens = kinds[0]
    assert isinstance(tokens, TensorValue), "checked above"
    return tokens.dims[1]


def _read_config(data: bytes) -> dict[str, Any]:
    try:
        config = parse_strict_json(data)
    except ValueError as error:
        raise ModelError(f"{TOKENIZER_CONFIG} is no JSON: {error}") from None
    if not isinstance(config, dict):
        raise ModelError(f"{TOKENIZER_CONFIG} holds no JSON object")
    return config
