"""Adapters as PEFT and llama.cpp write them, with random factors, and their sums in torch."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from py_runtime.folder.plain_safetensors import write_safetensors
from tests.gguf.written import Tensor, file

Factors = dict[str, tuple[np.ndarray, np.ndarray]]  # a linear of the decoder → (down, up)


def random_factors(linears: dict[str, tuple[int, int]], rank: int, seed: int) -> Factors:
    """Return factors for linears of [rows, columns]."""
    rng = np.random.default_rng(seed)
    return {
        name: (
            (rng.standard_normal((rank, columns)) / columns**0.5).astype(np.float32),
            (rng.standard_normal((rows, rank)) / rank**0.5).astype(np.float32),
        )
        for name, (rows, columns) in linears.items()
    }


def peft_config(rank: int, alpha: float, **more: Any) -> dict[str, Any]:
    plain = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "bias": "none", "use_dora": False}
    return {**plain, "r": rank, "lora_alpha": alpha, "target_modules": ["q_proj"], **more}


def peft_tensors(factors: Factors) -> dict[str, np.ndarray]:
    tensors = {}
    for name, (down, up) in factors.items():
        module = f"base_model.model.{'' if name == 'lm_head' else 'model.'}{name}"
        tensors[f"{module}.lora_A.weight"] = down
        tensors[f"{module}.lora_B.weight"] = up
    return tensors


def write_peft(folder: Path, factors: Factors, config: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps(config))
    tensors = write_safetensors(peft_tensors(factors), {"format": "pt"})
    (folder / "adapter_model.safetensors").write_bytes(tensors)
    return folder


GGUF_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def turned_by_converter(rows: np.ndarray, head_dim: int) -> np.ndarray:
    """Lay the rotary pairs of a head side by side, as llama.cpp's converter of Llamas does."""
    heads = rows.reshape(-1, 2, head_dim // 2, rows.shape[1])
    return heads.swapaxes(1, 2).reshape(rows.shape)


def gguf_adapter(
    factors: Factors, alpha: float, head_dim: int, architecture: str = "llama", **metadata: Any
) -> bytes:
    """Write it as convert_lora_to_gguf.py does; `head_dim` 0: rows stay as they are."""
    tensors = []
    for name, (down, up) in factors.items():
        _, layer, inner = name.split(".", 2)
        if head_dim and inner.endswith(("q_proj", "k_proj")):
            up = turned_by_converter(up, head_dim)
        stored = f"blk.{layer}.{GGUF_NAMES[inner]}.weight"
        tensors += [Tensor.floats(f"{stored}.lora_a", down), Tensor.floats(f"{stored}.lora_b", up)]
    entries = {
        "general.type": "adapter",
        "adapter.type": "lora",
        "general.architecture": architecture,
        "adapter.lora.alpha": float(alpha),
    }
    return file(entries | metadata, tensors)


def merge(decoder: torch.nn.Module, factors: Factors, scale: float) -> None:
    """Add an adapter to the weights of export/decoder.py."""
    parameters = {**dict(decoder.named_parameters()), **dict(decoder.named_buffers())}
    for name, (down, up) in factors.items():
        weight = parameters[f"{name}.weight"]
        added = torch.from_numpy(up).double() @ torch.from_numpy(down).double() * scale
        weight.data = (weight.double() + added).float()
