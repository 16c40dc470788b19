"""Mamba-2 mixers: their sizes, and what of their steps and norms is computed."""

from collections.abc import Mapping
from typing import Any

from py_runtime.base.model_errors import ModelError
from py_runtime.base.short_texts import short
from py_runtime.decoder.config import ScanSizes
from py_runtime.decoder.gguf_words import GgufKeys
from py_runtime.decoder.limits import MAX_HEAD_DIM, MAX_HEADS, MAX_STATE, MAX_TAPS
from py_runtime.decoder.words import MAMBA_GROUPS, Words

LONG_STEP = 1e9  # no time step is as long
MOST = {
    "mamba_n_heads": MAX_HEADS,
    "mamba_d_head": MAX_HEAD_DIM,
    "mamba_d_state": MAX_STATE,
    "mamba_n_groups": MAX_HEADS,
}


def scan_sizes(values: Mapping[str, Any]) -> ScanSizes:
    """Return the sizes that a whole config.json gives its Mamba-2 mixers."""
    for name, most in MOST.items():
        value = values.get(name)
        if type(value) is not int or not 1 <= value <= most:
            raise ModelError(
                f"{name} is {short(value)}; 1 to {most} is supported", "get another model"
            )
    sizes = ScanSizes(
        heads=values["mamba_n_heads"],
        head_dim=values["mamba_d_head"],
        state_dim=values["mamba_d_state"],
        groups=values["mamba_n_groups"],
        norm_groups=values[MAMBA_GROUPS],
        norm_eps=values["rms_norm_eps"],
        conv_bias=bool(values.get("mamba_conv_bias", True)),
        proj_bias=bool(values.get("mamba_proj_bias")),
    )
    if sizes.heads % sizes.groups or sizes.values % (sizes.norm_groups or 1):
        raise ModelError(
            f"{sizes.groups} groups do not share {sizes.heads} heads of {sizes.head_dim} evenly",
            "get another model",
        )
    return sizes


def check_steps(values: Words) -> None:
    """Check that a config.json leaves its time steps as they are; some keep them within bounds."""
    limits = values.get("time_step_limit")
    if limits is None:
        return
    found = [_as_number(limit) for limit in limits] if isinstance(limits, list | tuple) else []
    if len(found) != 2 or found[0] > 0 or found[1] < LONG_STEP:
        raise ModelError(
            f"its time steps are kept within {short(limits)}, which is not supported",
            "get another model",
        )


def _as_number(limit: Any) -> float:
    """Return a limit; JSON has no infinity, for which there are several spellings."""
    spelt: Any = limit.get("__float__") if isinstance(limit, dict) else limit
    try:
        return float(spelt)
    except (TypeError, ValueError):
        return 0.0


def mamba_keys(keys: GgufKeys) -> Words:
    """Return the sizes of a GGUF file's mixers; columns are normalised by groups."""
    heads = keys.integer("ssm.time_step_rank", 1, MAX_HEADS)
    inner = keys.integer("ssm.inner_size", heads, MAX_HEADS * MAX_HEAD_DIM)
    if inner % heads:
        raise keys.fault("ssm.inner_size", f"is {inner}, not whole for {heads} heads")
    groups = keys.integer("ssm.group_count", 1, MAX_HEADS, default=1)
    return {
        "mamba_n_heads": heads,
        "mamba_d_head": inner // heads,
        "mamba_d_state": keys.integer("ssm.state_size", 1, MAX_STATE),
        "mamba_n_groups": groups,
        "mamba_d_conv": keys.integer("ssm.conv_kernel", 2, MAX_TAPS),
        MAMBA_GROUPS: groups,
    }
