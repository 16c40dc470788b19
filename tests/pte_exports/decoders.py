"""Toy decoders from ExecuTorch's own Llama exporter, and the same model in eager torch."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from executorch.examples.models.llama.export_llama_lib import (
    build_args_parser,
    export_llama,
    get_llama_model,
)
from executorch.examples.models.llama.llama_transformer import construct_transformer
from executorch.examples.models.llama.model_args import ModelArgs
from executorch.extension.llm.export.config.llm_config import LlmConfig

from tests.pte_exports.exporter import quiet

VOCABULARY = 96
LONGEST_CALL = 47  # the exporter takes one less than max_seq_length
CONTEXT = 64
SIZES: dict[str, Any] = {
    "dim": 32,
    "n_layers": 2,
    "n_heads": 2,
    "n_kv_heads": 1,
    "head_dim": 16,
    "hidden_dim": 32,
    "vocab_size": VOCABULARY,
    "norm_eps": 1e-5,
    "rope_theta": 10000.0,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "qwen2_5": {"use_hf_rope": True, "attention_qkv_bias": True},
    "qwen3": {
        "use_hf_rope": True,
        "use_qk_norm": True,
        "qk_norm_before_rope": True,
        "head_dim": 32,
    },
}
QUANTISED: dict[str, list[str]] = {"fp32": [], "4w": ["-qmode", "4w", "-G", "16"]}
QUANTISED_EMBEDDING = ["-E", "4,16"]


@dataclass(frozen=True)
class Decoder:
    family: str
    weights: str  # a key of QUANTISED
    full_logits: bool = False
    quantised_embedding: bool = False

    @property
    def name(self) -> str:
        parts = [self.family, self.weights]
        parts += ["q4_embedding"] * self.quantised_embedding + ["full_logits"] * self.full_logits
        return "_".join(parts)


DECODERS = [
    *(Decoder(family, weights) for family in FAMILIES for weights in QUANTISED),
    Decoder("llama", "4w", full_logits=True, quantised_embedding=True),
    Decoder("qwen2_5", "4w", full_logits=True),
    Decoder("qwen3", "fp32", full_logits=True),
]


def write_random_checkpoint(folder: Path, family: str, seed: int) -> None:
    """params.json and checkpoint.pth, as the exporter takes them."""
    params = SIZES | FAMILIES[family]
    (folder / "params.json").write_text(json.dumps(params))
    generator = torch.Generator().manual_seed(seed)
    model = construct_transformer(ModelArgs(**params, max_seq_len=8, max_context_len=8))
    weights = {name: _random(name, value, generator) for name, value in model.named_parameters()}
    torch.save(weights, folder / "checkpoint.pth")


def _random(name: str, like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    noise = torch.randn(like.shape, generator=generator)
    if "norm" in name:
        return 1 + 0.1 * noise
    if name.endswith("bias"):
        return 0.3 * noise
    # Rows of more than unit length: a model of small weights says the same token for ever.
    return noise if "tok_embeddings" in name else noise * 2 / like.shape[1] ** 0.5


def export(decoder: Decoder, folder: Path) -> Path:
    """Write the decoder's .pte with the exporter's command line; the checkpoint is in `folder`."""
    path = folder / f"{decoder.name}.pte"
    options = ["--vulkan", "-kv", "--use_sdpa_with_kv_cache", "-n", str(path)]
    options += ["--metadata", '{"get_bos_id": 1, "get_eos_ids": [2, 3]}']
    options += ["--generate_full_logits"] * decoder.full_logits
    with quiet():
        export_llama(build_args_parser().parse_args([*_model_options(decoder, folder), *options]))
    return path


def _model_options(decoder: Decoder, folder: Path) -> list[str]:
    files = ["-c", str(folder / "checkpoint.pth"), "-p", str(folder / "params.json")]
    lengths = ["--max_seq_length", str(LONGEST_CALL + 1), "--max_context_length", str(CONTEXT)]
    quantised = QUANTISED[decoder.weights] + QUANTISED_EMBEDDING * decoder.quantised_embedding
    return ["--model", "llama2", "-d", "fp32", "-o", str(folder), *files, *lengths, *quantised]


class EagerDecoder:
    """The exporter's eager model without a cache: every answer is computed from all tokens."""

    def __init__(self, decoder: Decoder, folder: Path) -> None:
        options = [*_model_options(decoder, folder), "--generate_full_logits"]
        # Without a cache a call is as long as the context.
        options += ["--max_seq_length", str(CONTEXT)]
        config = LlmConfig.from_args(build_args_parser().parse_args(options))
        with quiet():
            self._model, _, _ = get_llama_model(config)

    @torch.no_grad()
    def logits(self, tokens: Sequence[int]) -> np.ndarray:
        """[S, V]: after each of the tokens."""
        answer: torch.Tensor = self._model(torch.tensor([list(tokens)]))
        return answer[0].numpy()

    def greedy(self, prompt: Sequence[int], steps: int) -> list[int]:
        tokens = list(prompt)
        for _ in range(steps):
            tokens.append(int(self.logits(tokens)[-1].argmax()))
        return tokens[len(prompt) :]
