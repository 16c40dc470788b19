"""Rotary keys of a GGUF file, in the words of a config.json."""

from typing import Any

import pytest

from tests.gguf.small_keys import CONTEXT, PLAIN, words_of

ROPE = "rope.scaling"
YARN = {f"{ROPE}.type": "yarn", f"{ROPE}.factor": 4.0, "context_length": CONTEXT}
AS_YARN = PLAIN | {"rope_type": "yarn", "factor": 4.0}
ROPES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (f"{ROPE}.attn_factor", {f"{ROPE}.attn_factor": 1.5}, PLAIN | {"attn_factor": 1.5}),
    (
        "linear",
        {f"{ROPE}.type": "linear", f"{ROPE}.factor": 2.0},
        PLAIN | {"rope_type": "linear", "factor": 2.0},
    ),
    ("yarn", YARN, AS_YARN | {"original_max_position_embeddings": CONTEXT}),
    (
        "yarn's context",
        YARN | {f"{ROPE}.original_context_length": 32},
        AS_YARN | {"original_max_position_embeddings": 32},
    ),
    *(
        (
            f"an extrapolation of {given}",
            YARN | {f"{ROPE}.yarn_ext_factor": given},
            AS_YARN | {"original_max_position_embeddings": CONTEXT} | kept,
        )
        for given, kept in (
            (-1.0, {}),
            (-0.5, {}),
            (0.0, {"extrapolation_factor": 0.0}),
            (0.5, {"extrapolation_factor": 0.5}),
        )
    ),
]


@pytest.mark.parametrize(("name", "given", "wanted"), ROPES, ids=[row[0] for row in ROPES])
def test_rotary_positions(name: str, given: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert words_of("llama", given) == {"rope_parameters": wanted}


def test_ministral_scales_by_the_position_where_yarn_stretches() -> None:
    given = YARN | {"attention.temperature_scale": 0.1}
    assert words_of("mistral3", given)["rope_parameters"]["llama_4_scaling_beta"] == 0.1
    assert "llama_4_scaling_beta" not in words_of("mistral3", YARN)["rope_parameters"]
