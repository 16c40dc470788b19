"""Random sparse autoencoders as files of each layout."""

import json
from typing import Any

import numpy as np

from py_runtime.folder.plain_safetensors import write_safetensors

Tensors = dict[str, np.ndarray]
HOOK = "blocks.1.hook_resid_pre"
NAME = "sae.safetensors"
SAELENS = {"hook_name": HOOK, "model_name": "toy", "normalize_activations": "none"}
CONFIGS: dict[str, dict[str, Any] | None] = {
    "saelens": {**SAELENS, "architecture": "standard", "apply_b_dec_to_input": True},
    "saelens, newer": {
        "architecture": "standard",
        "apply_b_dec_to_input": False,
        "normalize_activations": "expected_average_only_in",
        "metadata": {"hook_name": HOOK, "model_name": "toy"},
    },
    "saelens, layer norm": {**SAELENS, "normalize_activations": "layer_norm"},
    "saelens, constant norm": {**SAELENS, "normalize_activations": "constant_norm_rescale"},
    "saelens, topk": {**SAELENS, "architecture": "topk", "k": 5},
    "saelens, topk as activation": {
        **SAELENS,
        "activation_fn_str": "topk",
        "activation_fn_kwargs": {"k": 5},
    },
    "saelens, jumprelu": {**SAELENS, "architecture": "jumprelu", "apply_b_dec_to_input": True},
    "saelens, gated": {**SAELENS, "architecture": "gated"},
    "gemma scope": None,
    "gemma scope 2": {
        "architecture": "jump_relu",
        "hf_hook_point_in": "model.layers.0.output",
        "hf_hook_point_out": "model.layers.0.output",
        "affine_connection": False,
        "type": "sae",
        "width": 96,
        "l0": 10,
    },
    "eleuther": {"k": 7, "signed": False, "expansion_factor": 4, "activation": "topk"},
}
LAYOUTS = list(CONFIGS)


def random_tensors(layout: str, width: int, features: int, seed: int = 0) -> Tensors:
    rng = np.random.default_rng(seed)

    def values(*dims: int) -> np.ndarray:
        return rng.normal(0, 0.3, dims).astype(np.float32)

    decoder, own = {"W_dec": values(features, width)}, {"b_dec": values(width)}
    if layout == "eleuther":
        return {
            "encoder.weight": values(features, width),
            "encoder.bias": values(features),
            **decoder,
            **own,
        }
    found = {"W_enc": values(width, features), **decoder, **own}
    if layout == "saelens, gated":
        return found | {name: values(features) for name in ("b_gate", "r_mag", "b_mag")}
    found["b_enc"] = values(features)
    if "jumprelu" in layout or layout.startswith("gemma"):
        found["threshold"] = np.abs(values(features))
    if layout == "gemma scope 2":
        return {name.lower(): value for name, value in found.items()}
    return found


def autoencoder_files(
    layout: str, width: int, features: int = 96, seed: int = 0, **config: Any
) -> dict[str, bytes]:
    """Return a random autoencoder's files by their names."""
    files = {NAME: write_safetensors(random_tensors(layout, width, features, seed))}
    own = CONFIGS[layout]
    if own is None and not config:
        return files
    return {"cfg.json": json.dumps({**(own or {}), **config}).encode(), **files}
