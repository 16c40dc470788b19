"""The sizes of a vision tower, as a config.json or an mmproj file gives them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from py_runtime.base.model_errors import ModelError
from py_runtime.base.short_texts import short
from py_runtime.decoder.limits import MAX_HEADS, MAX_HIDDEN, MAX_LAYERS, MAX_WIDTH

GELU, GELU_TANH = "gelu", "gelu_tanh"
ACTIVATIONS = {"gelu": GELU, "gelu_pytorch_tanh": GELU_TANH}
MODEL_TYPES = ("smolvlm", "idefics3")  # of a whole config.json; both are of one form
TOWER_TYPES = ("smolvlm_vision", "idefics3_vision")
CHANNELS = 3
MAX_SIDE, MAX_FACTOR, MAX_EDGE = 1 << 11, 1 << 4, 1 << 13
MAX_PATCHES = 1 << 13  # of a tile
EPSILONS = (1e-12, 1e-1)
# What transformers takes where a config.json is silent.
TOWER_DEFAULTS = {
    "hidden_size": 1152,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 16,
    "image_size": 224,
    "patch_size": 32,
}
DEFAULT_FACTOR, DEFAULT_EPS = 2, 1e-6
MEAN = STD = (0.5, 0.5, 0.5)
EDGES = 4  # an image is scaled to so many tiles, where nothing is said


@dataclass(frozen=True)
class Preprocessing:
    """The steps that prepare an image for the tower."""

    edge: int  # the longer side is scaled to it before tiles are cut
    is_split: bool = True  # else the whole image is one tile
    mean: tuple[float, ...] = MEAN
    std: tuple[float, ...] = STD


@dataclass(frozen=True)
class TowerConfig:
    """The sizes of a tower: a tile of `side` pixels goes in, rows for a decoder come out."""

    side: int
    patch: int
    width: int
    hidden: int
    layers: int
    heads: int
    factor: int  # so many patches in each direction make up a row
    out: int  # columns of a row: the decoder's width
    preprocessing: Preprocessing
    activation: str = GELU_TANH
    eps: float = DEFAULT_EPS

    @property
    def head_dim(self) -> int:
        return self.width // self.heads

    @property
    def grid(self) -> int:
        """Return how many patches lie side by side."""
        return self.side // self.patch

    @property
    def patches(self) -> int:
        return self.grid**2

    @property
    def patch_columns(self) -> int:
        return CHANNELS * self.patch**2

    @property
    def rows(self) -> int:
        """Return how many rows a tile becomes: tokens of the prompt."""
        return self.patches // self.factor**2


def sees(values: Mapping[str, Any]) -> bool:
    """Return whether this config.json is of a model whose images can be read."""
    return values.get("model_type") in MODEL_TYPES and isinstance(values.get("vision_config"), dict)


def tower_config(values: Mapping[str, Any], processing: Any, out: int) -> TowerConfig:
    """Return the sizes that config.json and preprocessor_config.json give."""
    given = values["vision_config"]
    kind = given.get("model_type", TOWER_TYPES[0])
    if kind not in TOWER_TYPES:
        raise fault(f"vision_config.model_type is {short(kind)}, which is not supported")
    sizes = {key: given.get(key, default) for key, default in TOWER_DEFAULTS.items()}
    act = given.get("hidden_act", "gelu_pytorch_tanh")
    if act not in ACTIVATIONS:
        raise fault(f"vision_config.hidden_act is {short(act)}, which is not supported")
    config = TowerConfig(
        side=sizes["image_size"],
        patch=sizes["patch_size"],
        width=sizes["hidden_size"],
        hidden=sizes["intermediate_size"],
        layers=sizes["num_hidden_layers"],
        heads=sizes["num_attention_heads"],
        factor=values.get("scale_factor", DEFAULT_FACTOR),
        out=out,
        preprocessing=_preprocessing(processing, sizes["image_size"]),
        activation=ACTIVATIONS[act],
        eps=given.get("layer_norm_eps", DEFAULT_EPS),
    )
    return checked(config)


def checked(config: TowerConfig) -> TowerConfig:
    """Return the config; ModelError names the first size that no tower has."""
    bounds = {
        "image size": (config.side, MAX_SIDE),
        "patch size": (config.patch, MAX_SIDE),
        "width": (config.width, MAX_WIDTH),
        "hidden width": (config.hidden, MAX_HIDDEN),
        "number of layers": (config.layers, MAX_LAYERS),
        "number of heads": (config.heads, MAX_HEADS),
        "scale factor": (config.factor, MAX_FACTOR),
        "longest edge": (config.preprocessing.edge, MAX_EDGE),
    }
    for name, (found, most) in bounds.items():
        if type(found) is not int or not 1 <= found <= most:
            raise fault(f"its {name} is {short(found)}, not an integer from 1 to {most}")
    if config.width % config.heads:
        raise fault(f"{config.heads} heads do not share {config.width} columns")
    if not 1 <= config.patches <= MAX_PATCHES or config.grid % config.factor:
        raise fault(f"{config.grid} patches side by side cannot be put together by {config.factor}")
    if type(config.eps) not in (int, float) or not EPSILONS[0] <= config.eps <= EPSILONS[1]:
        raise fault(f"its layer_norm_eps is {short(config.eps)}")
    shares = (*config.preprocessing.mean, *config.preprocessing.std)
    are_numbers = all(type(share) in (int, float) and abs(share) <= 1 for share in shares)
    if len(shares) != 2 * CHANNELS or not are_numbers or 0 in config.preprocessing.std:
        raise fault("its mean and deviation are not three numbers each, up to 1")
    return config


def _preprocessing(given: Any, side: int) -> Preprocessing:
    """Read a preprocessor_config.json; where there is none, most models are alike."""
    found = given if isinstance(given, dict) else {}
    for key in ("do_resize", "do_rescale", "do_normalize", "do_convert_rgb"):
        if found.get(key, True) is not True:
            raise fault(f"{key} is {short(found[key])}, which is not supported")
    size, tile = found.get("size"), found.get("max_image_size")
    edge = size.get("longest_edge") if isinstance(size, dict) else EDGES * side
    own = tile.get("longest_edge") if isinstance(tile, dict) else side
    if own != side:
        raise fault(f"its tiles have {short(own)} pixels, but its tower takes {side}")
    if found.get("resample", 1) != 1:
        raise fault(f"resample is {short(found['resample'])}, which is not supported")
    numbers = {name: found.get(f"image_{name}", MEAN) for name in ("mean", "std")}
    if not all(isinstance(each, list | tuple) for each in numbers.values()):
        raise fault("image_mean and image_std must be lists")
    return Preprocessing(
        edge=edge,  # type: ignore[arg-type]  # checked with the others
        is_split=found.get("do_image_splitting", True) is True,
        mean=tuple(numbers["mean"]),
        std=tuple(numbers["std"]),
    )


def fault(text: str) -> ModelError:
    """Return the error of a tower that cannot be run."""
    return ModelError(f"the part that sees images: {text}", "get another copy, or another model")
