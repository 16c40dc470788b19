"""The torch side of every check: the same decoder in float32, and its results."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from export import torch_ops
from export.decoder import Decoder
from export.quantisers import Parts
from export.sources import Source
from py_runtime.base.shapes import ceil_div
from py_runtime.decoder.config import DecoderConfig
from py_runtime.decoder.tensors import WeightKind, expected_shapes, weight_names
from py_runtime.gguf.plane_values import dense
from py_runtime.model.goldens import HIDDEN, HIDDEN_TOKENS
from py_runtime.program.weight_kinds import FLOAT, Q4GSW

GOLDEN_STEPS = 64
GOLDEN_LENGTHS = (1, 7, 64, 300)
HIDDEN_LENGTH = 7
Goldens = dict[str, np.ndarray]


def reference_decoder(source: Source, config: DecoderConfig, as_stored: bool = True) -> Decoder:
    """Dense float32 weights: those of the stored form, or the source's own before quantising."""
    kinds = dict.fromkeys(weight_names(config), WeightKind(FLOAT))
    with torch.device("meta"):
        decoder = Decoder(replace(config, max_chunk=config.context), kinds).eval()
    quantised = set(kinds)
    state = {}
    for name in expected_shapes(config):
        dense = as_stored and name in quantised
        values = stored_values(source, name) if dense else source.dense(name)
        state[name] = torch.from_numpy(np.ascontiguousarray(values, np.float32))
    tables = source.rotary_tables(config.context)
    state |= {name: torch.from_numpy(table) for name, table in tables.items()}
    for name, buffer in decoder.named_buffers():
        if name.endswith(("_cache", "_state")):
            state[name] = torch.zeros(buffer.shape)
    decoder.load_state_dict(state, assign=True)
    return decoder


def stored_values(source: Source, weight: str) -> np.ndarray:
    """f32 [rows, columns]: what the stored weight stands for."""
    kind = source.kind(weight)
    parts = source.parts(weight)
    return dequantise(kind, parts, rows=(source.shape(weight) or (0,))[0])


def dequantise(kind: WeightKind, parts: Parts, rows: int) -> np.ndarray:
    """Return the dense float32 matrix that the parts stand for."""
    if kind.name == FLOAT:
        return parts["weight"]
    if kind.name == Q4GSW:
        weight, scales = torch.from_numpy(parts["weight"]), torch.from_numpy(parts["scales"])
        quantised = torch_ops.unpack_nibbles(weight).float() - 8
        return (quantised * scales[:, :rows].T.repeat_interleave(kind.group_size, 1)).numpy()
    return dense(kind.name, parts["weight"], parts.get("scales"))


@torch.no_grad()
def last_logits(decoder: Decoder, tokens: list[int]) -> np.ndarray:
    """f32 [vocabulary], after the last token."""
    return decoder(torch.tensor([tokens]), torch.tensor([0]))[0].numpy()


@torch.no_grad()
def hidden_states(decoder: Decoder, tokens: list[int]) -> dict[str, np.ndarray]:
    """Return the last token's row [width] after the embedding, each layer and the final norm.

    The program's values have the same names (see py_runtime/decoder/program.py).
    """
    rows: dict[str, np.ndarray] = {}

    def keep(name: str, hidden: Tensor) -> None:  # hidden: [1, S, width], or [1, width] once normed
        rows[name] = hidden.reshape(-1, hidden.shape[-1])[-1].numpy()

    def keep_result(name: str) -> Callable[[nn.Module, Any, Tensor], None]:
        return lambda module, args, result: keep(name, result)

    hooks = [
        decoder.layers[0].register_forward_pre_hook(lambda _, args: keep("embedding", args[0])),
        *(
            layer.register_forward_hook(keep_result(f"layers.{number}"))
            for number, layer in enumerate(decoder.layers)
        ),
        decoder.norm.register_forward_hook(keep_result("norm")),
    ]
    try:
        last_logits(decoder, tokens)
    finally:
        for hook in hooks:
            hook.remove()
    return rows


@torch.no_grad()
def greedy(decoder: Decoder, prompt: list[int], steps: int) -> tuple[list[int], list[float]]:
    """Return the continuation, and by how much each token led the runner-up."""
    logits = decoder(torch.tensor([prompt]), torch.tensor([0]))[0]
    tokens, margins = [], []
    for step in range(steps):
        (first, second), (token, _) = logits.topk(2)
        tokens.append(int(token))
        margins.append(float(first - second))
        if step + 1 < steps:
            logits = decoder(token[None, None], torch.tensor([len(prompt) + step]))[0]
    return tokens, margins


@torch.no_grad()
def perplexity(decoder: Decoder, tokens: list[int]) -> float:
    """Return the perplexity over all tokens but the first, in one pass."""
    hidden = decoder.hidden(torch.tensor([tokens]), 0)[0]
    total = 0.0
    for at in range(0, len(tokens) - 1, 64):  # logits of 64 tokens at a time, to save memory
        targets = torch.tensor(tokens[at + 1 : at + 65])
        logits = decoder.logits(hidden[at : at + len(targets)])
        total += float(torch.nn.functional.cross_entropy(logits, targets, reduction="sum"))
    return float(np.exp(total / (len(tokens) - 1)))


def make_goldens(decoder: Decoder, prompts: list[list[int]]) -> Goldens:
    """Make the goldens that travel with the model.

    These are logits after prompts of several lengths, greedy continuations, and the hidden states
    of one prompt, which show the layer at which a difference begins.
    """
    goldens: Goldens = {}
    stream = [token for prompt in prompts for token in prompt]

    def first_tokens(length: int) -> list[int]:
        return (stream * ceil_div(length, len(stream)))[:length]

    for length in GOLDEN_LENGTHS:
        if length <= decoder.config.context:
            tokens = first_tokens(length)
            goldens[f"tokens_{length}"] = np.array(tokens, np.int32)
            goldens[f"logits_{length}"] = last_logits(decoder, tokens)
    tokens = first_tokens(min(HIDDEN_LENGTH, decoder.config.context))
    goldens[HIDDEN_TOKENS] = np.array(tokens, np.int32)
    for name, row in hidden_states(decoder, tokens).items():
        goldens[HIDDEN + name] = row
    fitting = [prompt for prompt in prompts if len(prompt) < decoder.config.context]
    for number, prompt in enumerate(fitting):
        steps = min(GOLDEN_STEPS, decoder.config.context - len(prompt))
        continuation, margins = greedy(decoder, prompt, steps)
        goldens[f"prompt_{number}"] = np.array(prompt, np.int32)
        goldens[f"continuation_{number}"] = np.array(continuation, np.int32)
        goldens[f"margins_{number}"] = np.array(margins, np.float32)
    return goldens
