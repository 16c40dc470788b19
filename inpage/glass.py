"""The glass engine: see, measure, change and steer a model while it runs.

import inpage
from inpage import glass

model = await inpage.load("models/SmolLM2-135M-Instruct")
logits, cache = await glass.run_with_cache(model, "The capital of France is")
cache["blocks.7.attn.hook_pattern"]  # [1, heads, queries, keys]

Names are those of TransformerLens; docs/glass.md has all of them.
"""

from py_runtime.glass.autoencoders.autoencoder import Autoencoder, load_autoencoder
from py_runtime.glass.autoencoders.training import train_autoencoder
from py_runtime.glass.cache import ActivationCache
from py_runtime.glass.edits import Edit
from py_runtime.glass.graph_view import graph_view, op_view, values_of
from py_runtime.glass.kernel_lab import kernel_lab
from py_runtime.glass.memory_view import memory_view
from py_runtime.glass.opened_autoencoder import open_autoencoder
from py_runtime.glass.own_ops import kernel_of, own_op, replace
from py_runtime.glass.runs import Hook, hooks, run_with_cache, run_with_hooks
from py_runtime.glass.score import Alternative, Score, score
from py_runtime.glass.steering import clear, edits_of, set_strength, steer, steered
from py_runtime.glass.timeline import timeline
from py_runtime.glass.views.attention import attention
from py_runtime.glass.views.features import feature_edit, features, promoted
from py_runtime.glass.views.lens import lens
from py_runtime.glass.views.map import map_texts
from py_runtime.glass.views.neurons import neurons
from py_runtime.glass.views.norms import norms
from py_runtime.glass.views.patch import patch
from py_runtime.glass.workspace import close
from py_runtime.ops.registry import Op

__all__ = [
    "ActivationCache",
    "Alternative",
    "Autoencoder",
    "Edit",
    "Hook",
    "Op",
    "Score",
    "attention",
    "clear",
    "close",
    "edits_of",
    "feature_edit",
    "features",
    "graph_view",
    "hooks",
    "kernel_lab",
    "kernel_of",
    "lens",
    "load_autoencoder",
    "map_texts",
    "memory_view",
    "neurons",
    "norms",
    "op_view",
    "open_autoencoder",
    "own_op",
    "patch",
    "promoted",
    "replace",
    "run_with_cache",
    "run_with_hooks",
    "score",
    "set_strength",
    "steer",
    "steered",
    "timeline",
    "train_autoencoder",
    "values_of",
]
