"""Mixtures of experts: what sets those of a family apart, and their sizes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from py_runtime.base.model_errors import ModelError
from py_runtime.decoder.config import SILU, SOFTMAX, ExpertSizes
from py_runtime.decoder.limits import MAX_EXPERTS, MAX_USED

# The constants of the clamped gate. Its kernel has the same: tests/decoder/test_limits.py compares.
CLAMPED_ALPHA, CLAMPED_LIMIT = 1.702, 7.0


@dataclass(frozen=True)
class Mixture:
    """The traits of a family's experts."""

    scoring: str = SOFTMAX
    activation: str = SILU
    has_bias: bool = False  # router and experts
    interleaved: bool = False  # checkpoints have gate and up in one tensor, column by column
    stacked: bool = False  # or one after the other
    has_shared: bool = False  # one more that all tokens go through


def expert_sizes(values: Mapping[str, Any], mixture: Mixture) -> ExpertSizes:
    """Return the sizes that a whole config.json gives its experts."""
    if values.get("mlp_only_layers") or values.get("decoder_sparse_step", 1) != 1:
        raise ModelError(
            "some of its layers have experts and others none, which is not supported",
            "get another model",
        )
    if not values.get("use_expert_bias", True):
        raise ModelError(
            "nothing is added to what chooses its experts, which is not supported",
            "get another model",
        )
    sizes = ExpertSizes(
        values.get("num_local_experts") or values["num_experts"],
        values["num_experts_per_tok"],
        values.get("moe_intermediate_size") or values["intermediate_size"],
        bool(values.get("norm_topk_prob", True)),
        mixture.scoring,
        values.get("routed_scaling_factor") or 1.0,
        mixture.activation,
        mixture.has_bias,
        (values.get("shared_intermediate_size") or 0) if mixture.has_shared else 0,
    )
    for name, known in (("swiglu_alpha", CLAMPED_ALPHA), ("swiglu_limit", CLAMPED_LIMIT)):
        if values.get(name, known) != known:
            raise ModelError(
                f"{name} is {values[name]}; only {known} is supported", "get another model"
            )
    if not 1 <= sizes.used <= min(sizes.count, MAX_USED) or sizes.count > MAX_EXPERTS:
        raise ModelError(
            f"tokens go through {sizes.used} of {sizes.count} experts; up to {MAX_USED} of "
            f"{MAX_EXPERTS} are supported",
            "get another model",
        )
    return sizes
