"""The families that see, by what config.json and mmproj files call them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from py_runtime.decoder.gguf_words import GgufKeys
from py_runtime.vision import gemma3, gemma4, lfm2_vl, qwen_sizes, qwen_vl, smolvlm
from py_runtime.vision.sight import Colours, Sight

PLAIN = Colours()


@dataclass(frozen=True)
class SeeingFamily:
    """A family: who has it, and how its sizes are read."""

    known_as: str
    model_types: tuple[str, ...]  # of a whole config.json
    projector: str  # the type that an mmproj file says
    projection: str  # the last matrix of a tower, which has the decoder's columns as its rows
    decoders: tuple[str, ...]  # the model types of decoders that it stands before
    read_json: Callable[[Mapping[str, Any], Mapping[str, Any], int], Sight]
    read_gguf: Callable[[GgufKeys, int, Colours], Sight]
    is_turned: bool = False  # that matrix has the decoder's columns as its own
    colours: Colours = PLAIN  # where an mmproj file does not say them


FAMILIES = (
    SeeingFamily(
        "SmolVLM",
        ("smolvlm", "idefics3"),
        "idefics3",
        "mm.model.fc.weight",
        ("llama",),
        smolvlm.read_json,
        smolvlm.read_gguf,
    ),
    SeeingFamily(
        "Gemma 3",
        ("gemma3",),
        "gemma3",
        "mm.input_projection.weight",
        ("gemma3_text",),
        gemma3.read_json,
        gemma3.read_gguf,
        is_turned=True,
    ),
    SeeingFamily(
        "Gemma 4",
        ("gemma4",),
        "gemma4v",
        "mm.input_projection.weight",
        ("gemma4_text",),
        gemma4.read_json,
        gemma4.read_gguf,
    ),
    SeeingFamily(
        "Qwen2.5-VL",
        ("qwen2_5_vl",),
        "qwen2.5vl_merger",
        "mm.2.weight",
        ("qwen2_5_vl_text",),
        qwen_sizes.read_json,
        qwen_sizes.read_gguf_2_5,
        colours=qwen_vl.CLIP,
    ),
    SeeingFamily(
        "Qwen3-VL",
        ("qwen3_vl",),
        "qwen3vl_merger",
        "mm.2.weight",
        ("qwen3_vl_text",),
        qwen_sizes.read_json,
        qwen_sizes.read_gguf_3,
    ),
    SeeingFamily(
        "LFM2-VL",
        ("lfm2_vl",),
        "lfm2",
        "mm.2.weight",
        ("lfm2",),
        lfm2_vl.read_json,
        lfm2_vl.read_gguf,
    ),
)
BY_MODEL_TYPE = {each: family for family in FAMILIES for each in family.model_types}
BY_PROJECTOR = {family.projector: family for family in FAMILIES}


def sees(values: Mapping[str, Any]) -> bool:
    """Return whether this config.json is of a model whose images can be read."""
    is_known = values.get("model_type") in BY_MODEL_TYPE
    return is_known and isinstance(values.get("vision_config"), dict)


def read_sight(values: Mapping[str, Any], processing: Any, out: int) -> Sight:
    """Return the sizes that config.json and preprocessor_config.json give, checked."""
    family = BY_MODEL_TYPE[values["model_type"]]
    found = family.read_json(values, processing if isinstance(processing, dict) else {}, out)
    found.check()
    return found
