"""Activations as torch has them, by the names of our hooks."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel


def layers_of(model: PreTrainedModel) -> Any:
    base = model.base_model
    return getattr(base, "language_model", base).layers


def heads_of(attention: Any, part: str) -> Any:
    """Return what gives queries, keys or values: a norm of all heads together belongs to it."""
    projection = getattr(attention, f"{part}_proj")
    norm = getattr(attention, f"{part}_norm", None)
    weight = getattr(norm, "weight", None)
    is_whole = weight is not None and attention.head_dim < len(weight) == projection.out_features
    return norm if is_whole else projection


def activations(model: PreTrainedModel, tokens: list[int]) -> dict[str, np.ndarray]:
    """Return what hooks of torch see in one run, with the logits as "logits"."""
    found: dict[str, torch.Tensor] = {}
    handles = []

    def keep(name: str, module: Any, given: bool = False) -> None:
        def hook(_module: Any, args: Any, kwargs: Any, out: Any) -> None:
            value = (args[0] if args else kwargs["hidden_states"]) if given else out
            found[name] = (value[0] if isinstance(value, tuple) else value).detach()

        handles.append(module.register_forward_hook(hook, with_kwargs=True))

    for number, layer in enumerate(layers_of(model)):
        path = f"blocks.{number}"
        keep(f"{path}.hook_resid_pre", layer, given=True)
        keep(f"{path}.hook_resid_post", layer)
        attention = getattr(layer, "self_attn", None)
        if attention is not None:
            out = attention.o_proj if hasattr(attention, "o_proj") else attention.out_proj
            queries = getattr(attention, "q_proj", None)
            is_gated = queries is not None and queries.out_features != out.in_features
            for part in "qkv"[is_gated:]:
                if hasattr(attention, f"{part}_proj"):
                    keep(f"{path}.attn.hook_{part}", heads_of(attention, part))
            if not is_gated:
                keep(f"{path}.attn.hook_z", out, given=True)
        mlp = getattr(layer, "mlp", getattr(layer, "feed_forward", None))
        for part, names in {"pre": ("gate_proj", "w1"), "pre_linear": ("up_proj", "w3")}.items():
            for name in names:
                if isinstance(getattr(mlp, name, None), torch.nn.Linear):
                    keep(f"{path}.mlp.hook_{part}", getattr(mlp, name))
        for name in ("down_proj", "w2"):
            if isinstance(getattr(mlp, name, None), torch.nn.Linear):
                keep(f"{path}.mlp.hook_post", getattr(mlp, name), given=True)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        out = model(torch.tensor([tokens]), output_attentions=True, use_cache=False)
    for handle in handles:
        handle.remove()
    # The program's stream is in units of what a layer adds: weights hold Granite's multiplier.
    unit = getattr(model.config, "residual_multiplier", 1.0)
    for name in [name for name in found if "hook_resid" in name]:
        found[name] = found[name] / unit
    attending = [n for n, layer in enumerate(layers_of(model)) if hasattr(layer, "self_attn")]
    patterns = [each for each in out.attentions or () if each is not None]
    if len(patterns) == len(attending):
        for number, pattern in zip(attending, patterns, strict=True):
            found[f"blocks.{number}.attn.hook_pattern"] = pattern
    found["logits"] = out.logits
    return {name: value.float().numpy() for name, value in found.items()}


@contextmanager
def replacing(module: Any, change: Any) -> Iterator[None]:
    """Let a module's output be what `change` makes of it."""

    def hook(_module: Any, _args: Any, out: Any) -> Any:
        if isinstance(out, tuple):
            return (change(out[0]), *out[1:])
        return change(out)

    handle = module.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()
