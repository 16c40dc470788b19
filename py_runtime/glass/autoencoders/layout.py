"""The layouts of sparse autoencoders in files: names and shapes of tensors, and configurations.

SAELens: W_enc [D, F], b_enc, W_dec [F, D], b_dec, a threshold (JumpReLU) or gates. Gemma Scope: the
same, in small letters since its second edition. EleutherAI: encoder.weight [F, D], encoder.bias,
W_dec [F, D], b_dec, with the number of features that are kept (TopK) in cfg.json.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from py_runtime.base.messages import message
from py_runtime.base.short_texts import first_of, short
from py_runtime.folder.strict_json import is_count, parse_strict_json
from py_runtime.glass.autoencoders.errors import AutoencoderError
from py_runtime.glass.autoencoders.tensors import StreamedTensors

Config = Mapping[str, Any]
RELU, JUMP_RELU, TOP_K, GATED = "ReLU", "JumpReLU", "TopK", "gated"
ARCHITECTURES = {
    "standard": RELU,
    "jumprelu": JUMP_RELU,
    "jump_relu": JUMP_RELU,
    "topk": TOP_K,
    "gated": GATED,
}
ACTIVATIONS = (None, "relu", "topk")
NO, LAYER_NORM, CONSTANT_NORM = "none", "layer_norm", "constant_norm_rescale"
# Scaling by an expected average is folded into the weights when training ends.
NORMS = {None: NO, NO: NO, "expected_average_only_in": NO} | {
    each: each for each in (LAYER_NORM, CONSTANT_NORM)
}
# Keys that change what is computed, with the only values that are understood.
PLAIN: Mapping[str, tuple[Any, ...]] = {
    "finetuning_scaling_factor": (None, False),
    "rescale_acts_by_decoder_norm": (None, False),
    "hook_head_index": (None,),
    "transcode": (None, False),
    "skip_connection": (None, False),
    "affine_connection": (None, False),
    "signed": (None, False),
    "type": (None, "sae"),
}
MAX_NAME = 100  # letters of a hook or model that are shown
LAYER = re.compile(r"(?:model\.)?(?:layers|h)\.(\d{1,4})(?:\.(.{1,60}))?")
# What behind a layer's path of transformers has which hook.
OUTPUTS: dict[str | None, str] = {
    **dict.fromkeys((None, "output"), "hook_resid_post"),
    **dict.fromkeys(("mlp", "mlp.output", "post_feedforward_layernorm.output"), "hook_mlp_out"),
    **dict.fromkeys(("attn", "self_attn", "attention", "self_attn.output"), "hook_attn_out"),
    "self_attn.o_proj.input": "attn.hook_z",
}


@dataclass(frozen=True)
class Layout:
    """The names of tensors in the file, and what is computed with them."""

    width: int  # D
    features: int  # F
    encoder: str  # a matrix [D, F], or [F, D] where it is transposed
    is_transposed: bool
    decoder: str  # [F, D]
    bias: str | None  # [F]; gated: of the gates
    own_bias: str  # [D], of the decoder
    kind: str
    kept: int = 0  # features of a token, where it is TopK
    threshold: str | None = None  # [F]
    magnitude: tuple[str, str] | None = None  # gated: scale and bias of the activations, [F]
    takes_bias_off: bool = True  # the decoder's bias, before the encoder
    norm: str = NO  # of the activations
    hook: str | None = None  # which it reads, as the configuration says
    made_for: str | None = None  # the name of a model


def layout_of(tensors: StreamedTensors, config: Config | None) -> Layout:
    """Return the layout of a file; AutoencoderError says what is not as it must be."""
    values = {**_metadata(tensors.metadata), **(config or {})}
    for nested in ("metadata", "meta"):  # SAELens keeps what it knows of the model there
        inner = values.get(nested)
        values = {**inner, **values} if isinstance(inner, dict) else values
    for key, plain in PLAIN.items():
        if values.get(key) not in plain:
            raise _not_understood(tensors.file, key, values[key])
    small = {name.lower(): name for name in tensors.stored}
    names = {name: small.get(name, name) for name in ("w_enc", "b_enc", "w_dec", "b_dec")}
    if "encoder.weight" in tensors.stored and "w_dec" in small:
        layout = _eleuther(tensors, names, values)
    elif "w_enc" in small and "w_dec" in small:
        layout = _saelens(tensors, names, values)
    else:
        listed = ", ".join(first_of([short(name, 40) for name in tensors.stored], 8))
        raise AutoencoderError(
            message("autoencoder_layout", file=tensors.file, tensors=listed or "none")
        )
    for key, size in (("d_in", layout.width), ("d_sae", layout.features)):
        if values.get(key) not in (None, size):
            raise _not_understood(tensors.file, key, values[key])
    return layout


def _eleuther(tensors: StreamedTensors, names: Mapping[str, str], values: Config) -> Layout:
    features, width = _matrix(tensors, "encoder.weight")
    kept, activation = values.get("k"), values.get("activation")
    if activation not in (None, "topk"):
        raise _not_understood(tensors.file, "activation", activation)
    if not is_count(kept) or not 0 < kept <= features:
        raise AutoencoderError(message("autoencoder_needs_k", file=tensors.file))
    hook, made_for = _place(tensors.file, values)
    layout = Layout(
        width=width,
        features=features,
        encoder="encoder.weight",
        is_transposed=True,
        decoder=names["w_dec"],
        bias="encoder.bias",
        own_bias=names["b_dec"],
        kind=TOP_K,
        kept=kept,
        hook=hook,
        made_for=made_for,
    )
    tensors.check(layout.encoder, (features, width))
    return _checked(tensors, layout, "encoder.bias")


def _saelens(tensors: StreamedTensors, names: Mapping[str, str], values: Config) -> Layout:
    width, features = _matrix(tensors, names["w_enc"])
    has_threshold = "threshold" in tensors.stored
    is_gated = {"b_gate", "r_mag", "b_mag"} <= tensors.stored.keys()
    given = values.get("architecture")
    spellings = ("activation_fn", "activation_fn_str", "activation")
    spelling = next((name for name in spellings if values.get(name) is not None), spellings[0])
    activation = values.get(spelling)
    kwargs = values.get("activation_fn_kwargs")
    kept = values.get("k", kwargs.get("k") if isinstance(kwargs, dict) else None)
    usual = JUMP_RELU if has_threshold else GATED if is_gated else RELU
    if given is not None and (not isinstance(given, str) or given not in ARCHITECTURES):
        raise _not_understood(tensors.file, "architecture", given)
    if activation not in ACTIVATIONS:
        raise _not_understood(tensors.file, spelling, activation)
    kind = usual if given is None else ARCHITECTURES[given]
    kind = TOP_K if kind == RELU and activation == "topk" else kind
    if kind == TOP_K and not (is_count(kept) and 0 < kept <= features):
        raise AutoencoderError(message("autoencoder_needs_k", file=tensors.file))
    norm = values.get("normalize_activations")
    if not isinstance(norm, str | None) or norm not in NORMS:
        raise _not_understood(tensors.file, "normalize_activations", norm)
    takes_off = values.get("apply_b_dec_to_input", kind != JUMP_RELU)  # as Gemma Scope has it
    if not isinstance(takes_off, bool):
        raise _not_understood(tensors.file, "apply_b_dec_to_input", takes_off)
    bias = "b_gate" if kind == GATED else names["b_enc"]
    hook, made_for = _place(tensors.file, values)
    layout = Layout(
        width=width,
        features=features,
        encoder=names["w_enc"],
        is_transposed=False,
        decoder=names["w_dec"],
        bias=bias,
        own_bias=names["b_dec"],
        kind=kind,
        kept=kept if kind == TOP_K else 0,
        threshold="threshold" if kind == JUMP_RELU else None,
        magnitude=("r_mag", "b_mag") if kind == GATED else None,
        takes_bias_off=takes_off,
        norm=NORMS[norm],
        hook=hook,
        made_for=made_for,
    )
    more = [*([layout.threshold] if layout.threshold else []), *(layout.magnitude or ())]
    return _checked(tensors, layout, bias, *more)


def _matrix(tensors: StreamedTensors, name: str) -> tuple[int, int]:
    dims = tensors.stored[name].dims
    if len(dims) != 2 or 0 in dims:
        wanted, found = "[…, …]", str(list(dims))
        raise AutoencoderError(
            message("autoencoder_shape", file=tensors.file, tensor=name, found=found, wanted=wanted)
        )
    return dims[0], dims[1]


def _checked(tensors: StreamedTensors, layout: Layout, *of_features: str) -> Layout:
    for name in of_features:
        tensors.check(name, (layout.features,))
    tensors.check(layout.decoder, (layout.features, layout.width))
    tensors.check(layout.own_bias, (layout.width,))
    return layout


def _place(file: str, values: Config) -> tuple[str | None, str | None]:
    """Return the hook and the model that the configuration names."""
    of_modules, out = values.get("hf_hook_point_in"), values.get("hf_hook_point_out")
    if out is not None and out != of_modules:  # it predicts something else than it reads
        raise _not_understood(file, "hf_hook_point_out", out)
    spellings = (*(values.get(name) for name in ("hook_name", "hookpoint")), of_modules)
    hook = next((name for name in spellings if isinstance(name, str)), None)
    made_for = values.get("model_name")
    return (
        None if hook is None else hook_named(hook),
        made_for[:MAX_NAME] if isinstance(made_for, str) else None,
    )


def hook_named(name: str) -> str:
    """Return the hook of a place that may be named as transformers names its modules."""
    match = LAYER.fullmatch(name)
    if match is None or match[2] not in OUTPUTS:
        return name[:MAX_NAME]
    return f"blocks.{int(match[1])}.{OUTPUTS[match[2]]}"


def read_config(file: str, data: bytes) -> dict[str, Any]:
    """Read cfg.json or config.json."""
    try:
        values = parse_strict_json(data)
    except ValueError as error:
        fault = f"{file}: {error}"
        raise AutoencoderError(message("autoencoder_damaged", fault=fault)) from None
    if not isinstance(values, dict):
        raise AutoencoderError(message("autoencoder_damaged", fault=f"{file}: no object"))
    return values


def _metadata(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the metadata of a safetensors file, in which numbers and truth values are texts."""
    found: dict[str, Any] = {}
    for name, text in given.items():
        known = {"True": True, "False": False, "None": None}
        try:
            found[name] = known[text] if text in known else parse_strict_json(text.encode())
        except ValueError:
            found[name] = text
    return found


def _not_understood(file: str, key: str, value: Any) -> AutoencoderError:
    return AutoencoderError(message("autoencoder_key", file=file, key=key, value=short(value)))
