"""The sizes of Qwen's towers, as a config.json or an mmproj file gives them."""

from collections.abc import Mapping
from typing import Any

from py_runtime.base.short_texts import short
from py_runtime.decoder.gguf_words import GgufKeys
from py_runtime.decoder.limits import MAX_HEADS, MAX_HIDDEN, MAX_LAYERS, MAX_WIDTH
from py_runtime.vision.qwen_tower import QwenVl
from py_runtime.vision.qwen_vl import (
    CLIP,
    EPS,
    FRAMES,
    MAX_FACTOR,
    MAX_PATCH,
    MAX_PIXELS,
    MAX_WINDOW,
)
from py_runtime.vision.sight import EPSILONS, Colours, check_resample, fault, read_colours

PILLOWS_BICUBIC = 3
ACTS = {False: "silu", True: "gelu_pytorch_tanh"}
DEFAULTS: dict[bool, dict[str, Any]] = {
    False: {
        "patch_size": 14,
        "hidden_size": 3584,
        "intermediate_size": 3420,
        "depth": 32,
        "num_heads": 16,
        "spatial_merge_size": 2,
        "window_size": 112,
        "fullatt_block_indexes": (7, 15, 23, 31),
    },
    True: {
        "patch_size": 16,
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "depth": 27,
        "num_heads": 16,
        "spatial_merge_size": 2,
        "num_position_embeddings": 2304,
        "deepstack_visual_indexes": (8, 16, 24),
    },
}
USUAL_PIXELS = (56 * 56, 28 * 28 * 1280)


def read_json(values: Mapping[str, Any], processing: Mapping[str, Any], out: int) -> QwenVl:
    """Return the sizes that config.json and preprocessor_config.json give."""
    given = values["vision_config"]
    is_new = values["model_type"] == "qwen3_vl"
    usual = DEFAULTS[is_new]
    sizes = {key: given.get(key, default) for key, default in usual.items()}
    if given.get("hidden_act", ACTS[is_new]) != ACTS[is_new]:
        raise fault(f"vision_config.hidden_act is {short(given['hidden_act'])}")
    if given.get("temporal_patch_size", FRAMES) != FRAMES:
        raise fault(f"temporal_patch_size is {short(given['temporal_patch_size'])}")
    check_resample(processing, PILLOWS_BICUBIC)
    least, most = _pixels(processing)
    whole = sizes.get("fullatt_block_indexes", ())
    deep = sizes.get("deepstack_visual_indexes", ())
    if not all(isinstance(each, list | tuple) for each in (whole, deep)):
        raise fault("it names layers otherwise than by a list")
    return QwenVl(
        patch=sizes["patch_size"],
        width=sizes["hidden_size"],
        hidden=sizes["intermediate_size"],
        layers=sizes["depth"],
        heads=sizes["num_heads"],
        out=out,
        factor=sizes["spatial_merge_size"],
        least=least,
        most=most,
        window=sizes.get("window_size", 0),
        unbound=tuple(whole),
        positions=sizes.get("num_position_embeddings", 0),
        deep=tuple(deep),
        colours=read_colours(processing, Colours() if is_new else CLIP),
    )


def _pixels(processing: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the least and the most pixels of an image, which are in one of two places."""
    size = processing.get("size")
    size = size if isinstance(size, dict) else {}
    least, most = USUAL_PIXELS
    return (
        processing.get("min_pixels") or size.get("shortest_edge") or least,
        processing.get("max_pixels") or size.get("longest_edge") or most,
    )


def read_gguf_2_5(keys: GgufKeys, out: int, colours: Colours) -> QwenVl:
    """Return the sizes of a Qwen2.5-VL's tower."""
    layers = keys.integer("vision.block_count", 1, MAX_LAYERS)
    period = keys.integer("vision.n_wa_pattern", 0, MAX_LAYERS, default=0)
    # A layer of so many sees the whole image; 0: all do.
    whole = range(period - 1, layers, period) if period else range(layers)
    window = keys.integer("vision.window_size", 1, MAX_WINDOW, default=112)
    return _read_gguf(keys, out, colours, window=window, unbound=tuple(whole))


def read_gguf_3(keys: GgufKeys, out: int, colours: Colours) -> QwenVl:
    """Return the sizes of a Qwen3-VL's tower."""
    layers = keys.integer("vision.block_count", 1, MAX_LAYERS)
    side = keys.integer("vision.image_size", 1, 1 << 14)
    patch = keys.integer("vision.patch_size", 1, MAX_PATCH)
    flags = keys.pattern("vision.is_deepstack_layers", layers, default=1)
    deep = tuple(number for number, flag in enumerate(flags) if flag)
    return _read_gguf(keys, out, colours, positions=(side // patch) ** 2, deep=deep)


def _read_gguf(keys: GgufKeys, out: int, colours: Colours, **more: Any) -> QwenVl:
    least, most = USUAL_PIXELS
    return QwenVl(
        patch=keys.integer("vision.patch_size", 1, MAX_PATCH),
        width=keys.integer("vision.embedding_length", 1, MAX_WIDTH),
        hidden=keys.integer("vision.feed_forward_length", 1, MAX_HIDDEN),
        layers=keys.integer("vision.block_count", 1, MAX_LAYERS),
        heads=keys.integer("vision.attention.head_count", 1, MAX_HEADS),
        out=out,
        factor=keys.integer("vision.spatial_merge_size", 1, MAX_FACTOR, default=2),
        least=keys.integer("vision.image_min_pixels", 1, MAX_PIXELS, default=least),
        most=keys.integer("vision.image_max_pixels", 1, MAX_PIXELS, default=most),
        in_one=False,
        eps=keys.number("vision.attention.layer_norm_epsilon", *EPSILONS, default=EPS),
        colours=colours,
        **more,
    )
