"""A family of models: what sets its decoder, its checkpoints and its GGUF files apart from Llama's.

py_runtime/decoder/families has a file for each family, or for several that are one maker's.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from py_runtime.decoder.config import BEFORE, SILU
from py_runtime.decoder.conventions import Convention, Thoughts
from py_runtime.decoder.gguf_words import WordsFromKeys, no_windows
from py_runtime.decoder.mixtures import Mixture
from py_runtime.decoder.words import Words

Fused = Mapping[str, tuple[str, ...]]  # a stored tensor of a layer → the decoder's, in their order


Runs = tuple[tuple[int, float], ...]

# Tensors whose names have no end in checkpoints.
WITHOUT_END = {
    ".decay.weight": ".A_log",
    ".dt.bias": ".dt_bias",
    ".skip.weight": ".D",
    ".layer_scalar.weight": ".layer_scalar",
}


def no_words(values: Words) -> Words:
    """Return nothing beyond what a config.json says."""
    return {}


@dataclass(frozen=True, kw_only=True)
class CheckpointForm:
    """A family's form in Hugging Face folders: the names and the storage that are its own.

    Names of tensors are without `model.`, the layer's number and `.weight`.
    """

    # The decoder's name of a tensor → the checkpoint's; a star stands for an expert's number.
    tensors: Mapping[str, str] = field(default_factory=dict)
    layers: str = "layers"  # what comes before a layer's number
    fused: Fused = field(default_factory=dict)
    norms_from_one: bool = False  # checkpoints hold what norms have beyond 1; GGUF files do not
    # The class of transformers that reads the config.json, where the family has none of its own.
    read_as: str | None = None
    # What rows of a layer's matrices are multiplied with: so many, one run after the other.
    multipliers: Callable[[Words], Mapping[str, Runs]] | None = None
    keys: Mapping[str, str] = field(default_factory=dict)  # of config.json → what others call them
    # From a config.json to the keys that transformers needs in addition.
    words: Callable[[Words], Words] = no_words
    # From what transformers reads in it to the keys that config_json.py needs in addition.
    words_after: Callable[[Words], Words] = no_words

    def stored_name(self, name: str) -> str:
        """Return what checkpoints call a tensor, without what stands before the whole decoder.

        The names of fused tensors, which hold several of the decoder's, are not among them.
        """
        owner, _, part = name.rpartition(".")
        if owner.startswith("layers."):
            _, number, inner = owner.split(".", 2)
            starred = re.sub(r"(?<=experts\.)\d+", "*", inner)
            stored_inner = self.tensors.get(starred, starred)
            if starred != inner:
                stored_inner = stored_inner.replace("*", inner.split(".")[2])
            owner = f"{self.layers}.{number}.{stored_inner}"
        else:
            owner = self.tensors.get(owner, owner)
        stored = f"{owner}.{part}"
        for whole, without_end in WITHOUT_END.items():
            stored = stored.replace(whole, without_end)
        return stored


@dataclass(frozen=True, kw_only=True)
class GgufForm:
    """A family's form in GGUF files: the names, the storage and the keys that are its own."""

    # In general.architecture; None: files of this family say that they are another's.
    architecture: str | None = None
    # The decoder's name of a tensor → the file's, where others have another name for it.
    tensors: Mapping[str, str] = field(default_factory=dict)
    fused: Fused = field(default_factory=dict)
    without_end: tuple[str, ...] = ()  # tensors of a layer that files name without .weight
    # llama.cpp's converter lays the rotary pairs of q and k side by side: rows (i, i + half) of a
    # head become (2i, 2i + 1).
    pairs_side_by_side: bool = False
    predicts_ahead: bool = False  # files may have further layers, for tokens to come
    layers_differ: bool = False  # in their widths: files have a list of them
    has_factor_tensors: bool = False  # factors for rotary frequencies are tensors
    computed: tuple[str, ...] = ()  # keys that other families are refused for
    words: WordsFromKeys = no_windows


@dataclass(frozen=True, kw_only=True)
class Family:
    """Everything that follows from a model type; what a config.json says is not repeated here."""

    model_type: str  # in config.json
    known_as: str
    checkpoint: CheckpointForm = CheckpointForm()
    gguf: GgufForm = GgufForm()
    # Attention.
    qkv_bias: bool = False  # always, and never on the output; else as `attention_bias` says
    qk_norm: str | None = None
    value_norm: bool = False  # heads of v are normalised, without weights
    unscaled_scores: bool = False
    sinks: bool = False
    gated_attention: bool = False  # checkpoints have a head's gate behind its query, in one matrix
    # Rotary positions.
    turns_only_sliding: bool = False  # where some layers slide, the others do not turn heads
    # Queries grow beyond the original context, where rope_parameters have llama_4_scaling_beta.
    scales_queries: bool = False
    # Mixers without attention, by the name that layer_types have for them.
    mixers: Mapping[str, str] = field(default_factory=dict)
    one_part: bool = False  # a layer is a mixer or an MLP, not both
    # MLPs.
    activation: str = SILU
    mixture: Mixture | None = None  # MLPs are of experts, but for those of the first layers in some
    # Norms and scales.
    norms: str = BEFORE
    root_of_width: bool = False  # embeddings are multiplied with it
    layer_scalars: bool = False  # each layer ends with a multiplication
    # Images.
    sees_whole: bool = False  # the tokens of an image see each other


@dataclass(frozen=True, kw_only=True)
class FamilyGroup:
    """All that a file of py_runtime/decoder/families has: families, and how they chat."""

    families: tuple[Family, ...] = ()
    calls: tuple[Convention, ...] = ()  # of tools, as their templates ask for them
    thoughts: tuple[Thoughts, ...] = ()
