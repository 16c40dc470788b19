"""Products by one, two or three int8 planes of x, compared: python -m bench.planes.

PyTorch reads a long text with the default model's weights, in floats, and with each linear's input
rounded as the planes of shaders/linear round it: blocks of 32 columns with a scale each. Kernels
add nothing but sums in another order. At each position the likeliest next token is compared.
"""

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from gguf import GGUFReader, dequantize
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

from bench.caches import MODEL, Reading, agreement, divergence, long_text
from export.default_model import default_gguf
from py_runtime.program.weight_kinds import BLOCK

NAMES = {
    "model.layers.": "blk.",
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "self_attn.o_proj": "attn_output",
    "self_attn.": "attn_",
    "mlp.": "ffn_",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "_proj": "",
}
# What the largest column of a block becomes, in units of the lowest plane.
TOPS = {1: 127, 2: 127 * 256, 3: 127 * 256 * 254}


def default_model() -> LlamaForCausalLM:
    """Return the default model in floats, with the weights of its GGUF."""
    tensors = {
        tensor.name: torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).copy())
        for tensor in GGUFReader(default_gguf()).tensors
    }
    config = LlamaConfig(**json.loads((MODEL / "config.json").read_text()))
    model = LlamaForCausalLM(config).eval()
    for name, parameter in model.named_parameters():
        found = tensors[gguf_name(name)]
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            # A GGUF has the two dims that rotate together as neighbours.
            found = found.view(-1, config.head_dim // 2, 2, config.hidden_size).transpose(1, 2)
        parameter.data = found.reshape(parameter.shape).float()
    return model


def gguf_name(name: str) -> str:
    """Return what a GGUF calls a parameter of a Llama."""
    for own, other in NAMES.items():
        name = name.replace(own, other)
    return name


def rounded(x: torch.Tensor, top: int) -> torch.Tensor:
    """Round columns of x to whole parts of their block's largest."""
    blocks = x.double().unflatten(-1, (-1, BLOCK))
    unit = (blocks.abs().amax(-1, keepdim=True) / top).clamp_min(1e-30)
    return ((blocks / unit).round() * unit).flatten(-2).to(x.dtype)


@contextmanager
def by_planes(model: nn.Module, planes: int) -> Iterator[None]:
    """Round what every linear of the model is given."""
    hooks = [
        module.register_forward_pre_hook(lambda _, given: (rounded(given[0], TOPS[planes]),))
        for module in model.modules()
        if isinstance(module, nn.Linear)
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def read(model: nn.Module, text: list[int]) -> Reading:
    """Read a text in one call."""
    with torch.inference_mode():
        logits = model(torch.tensor([text]), use_cache=False).logits[0].numpy()
    return Reading(logits.astype(np.float16), logits.argmax(axis=1), [])


def narrowest(one: Reading, other: Reading) -> str:
    """Return the largest margin, in logits, of a token that is likeliest to one reading alone."""
    differs = np.flatnonzero(one.likeliest != other.likeliest)
    margins = [
        float(other.logits[at, other.likeliest[at]]) - float(other.logits[at, one.likeliest[at]])
        for at in differs
    ]
    return f"{max(margins):.2g}" if margins else "–"


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.planes")
    parser.add_argument("--positions", type=int, default=2000)
    text = long_text(parser.parse_args().positions)
    model = default_model()
    floats = read(model, text)
    print(f"| {len(text):,} positions | top-1 as floats | largest margin lost | divergence |")
    print("| --- | ---: | ---: | ---: |")
    for planes in TOPS:
        with by_planes(model, planes):
            each = read(model, text)
        off = divergence(each, floats)
        same = agreement(each, floats)
        print(f"| {planes} | {same:.2%} | {narrowest(each, floats)} | {off:.1e} |", flush=True)


if __name__ == "__main__":
    main()
