"""Small random models in GGUF files, one of each family and one of each type of weights."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType

from tests.export.family_configs import FAMILIES, FULL, SIZES, SLIDES, YARN_ROPE
from tests.export.gguf_files import ARCHITECTURES, write_gguf
from tests.gguf import small
from tests.gguf.blocks import TYPES
from tests.gguf.mixes import CONTEXT, MIXES, Mix, k_mix, write
from tests.llama_cpp.comparison import Gate

STEPS = 12
# Of prompts: within a window, about to leave it, and beyond what a sliding layer keeps.
LENGTHS = (5, 20, 130)

EXACT = Gate(1e-4)
# llama.cpp looks GELU up in a table of halves: a model errs by that, and more with each layer.
GELU = Gate(5e-2, tie=0.05)
# It rounds activations to the same type as these weights, and to eight bits beside all others.
HALVES = Gate(5e-3)
SHORT_FLOATS = Gate(3e-2, tie=0.05)
EIGHT_BITS = Gate(1e-1, tie=0.2)
EXPERTS = Gate(2e-1, tie=0.2)  # and it may choose other ones


@dataclass(frozen=True)
class SmallFile:
    """A file that both load, and how far apart their answers may be."""

    name: str
    gate: Gate
    vocabulary: int
    context: int
    write: Callable[[Path], None]

    @property
    def file_name(self) -> str:
        """A name that a site can serve a model under."""
        return re.sub(r"\W+", "_", self.name) + ".gguf"

    def prompts(self) -> list[list[int]]:
        """Return random tokens, as many as the model's context has room for."""
        rng = np.random.default_rng(16)
        fitting = [length for length in LENGTHS if length + STEPS <= self.context]
        return [rng.integers(3, self.vocabulary, length).tolist() for length in fitting]


# Families -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """A change to a family's config without which llama.cpp computes something else, and why."""

    why: str
    config: dict[str, Any]
    refused: bool = False  # without it; otherwise llama.cpp computes something else


NO_WINDOW = "no layer of this architecture slides: all of a prompt must be in the window"
CHANGES = {
    "mistral 0.1": Change(NO_WINDOW, {"sliding_window": 200}),
    "phi-3 mini": Change(NO_WINDOW, {"sliding_window": 200}),
    "exaone 4 hybrid": Change("layers slide if there are 64 of them", {"num_hidden_layers": 64}),
    "olmo 2": Change("heads must be as wide as the model together", {"hidden_size": 64}, True),
    "olmo 3": Change(
        "rope.scaling.yarn_attn_factor is not read: it follows from the factor, as in real files",
        {
            "rope_parameters": {
                FULL: YARN_ROPE | {"attention_factor": 1 + 0.1 * math.log(YARN_ROPE["factor"])},
                SLIDES: {"rope_type": "default", "rope_theta": 10000.0},
            }
        },
    ),
    "granite 4 moe": Change(
        "rope.scaling.finetuned is not read, which says that there are no positions",
        {"position_embedding_type": "rope"},
    ),
    "lfm2-moe": Change(
        "expert_weights_scale is not read: it is 1, as in real files",
        {"routed_scaling_factor": 1.0},
    ),
    "qwen3.5": Change(
        "keys and values of a delta net must be equally wide", {"linear_value_head_dim": 16}, True
    ),
}
GATES = {
    **dict.fromkeys(("gemma 1", "gemma 2", "gemma 3", "gemma 4"), GELU),
    "gpt-oss": EXPERTS,  # which are MXFP4
}


def family_files() -> list[SmallFile]:
    """Return a file of each family, and one whose context is longer than its rope was made for."""
    changes = {family: CHANGES[family].config if family in CHANGES else {} for family in FAMILIES}
    longer = {"max_position_embeddings": 256, "original_max_position_embeddings": 64}
    return [
        *(family_file(family, config) for family, config in changes.items()),
        family_file("phi-3.5", longer, "phi-3.5 beyond its original context"),
    ]


def family_file(family: str, config: dict[str, Any], name: str | None = None) -> SmallFile:
    """Return the file of a family, with these changes to its config: its weights are float32."""
    whole = SIZES | FAMILIES[family] | config

    def write_to(path: Path) -> None:
        kind = GGMLQuantizationType.F32
        write_gguf(path, family, ARCHITECTURES.get(family, "llama"), kind, changes=config)

    gate, context = GATES.get(family, EXACT), whole["max_position_embeddings"]
    return SmallFile(name or family, gate, whole["vocab_size"], context, write_to)


# Types --------------------------------------------------------------------------------------------


def type_files() -> list[SmallFile]:
    """Return a file of each type that the engine has kernels for, and one of many types."""
    files = [type_file(name, k_mix(name, name)) for name in TYPES]
    return [*files, type_file("many types", MIXES["dynamic"])]


def type_file(name: str, mix: Mix) -> SmallFile:
    """Return a file of Llama's architecture whose matrices are of these types."""

    def write_to(path: Path) -> None:
        path.write_bytes(write("llama", mix))

    gate = {"F16": HALVES, "BF16": SHORT_FLOATS}.get(name, EIGHT_BITS)
    return SmallFile(name, gate, small.VOCABULARY, CONTEXT, write_to)
