"""Rotary tables as transformers makes them, in float32: frequencies by type, then cos and sin."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from py_runtime.base.model_errors import ModelError
from py_runtime.base.short_texts import short

Floats = NDArray[np.float32]
Rope = Mapping[str, Any]  # rope_parameters of a config.json

SECTIONS = "mrope_section"  # of pairs, by the place that turns them: in time, line, column
INTERLEAVED = "mrope_interleaved"  # whether pairs of different places take turns
SEVERAL = 3  # such places
PROPORTIONAL = "proportional"  # the first pairs of a head turn, as if all did
BETA_FAST, BETA_SLOW = 32.0, 1.0  # turns over the original context, where yarn's ramp begins, ends


def rotary_tables(
    rope: Rope, dims: int, positions: int, factors: np.ndarray | None = None
) -> tuple[Floats, Floats]:
    """Return cos and sin, each [positions, dims] with two equal halves.

    `factors` [dims / 2] divide the frequencies.
    """
    frequencies, scale = _frequencies(rope, dims, positions)
    scale *= rope.get("attn_factor", 1.0)  # of GGUF files alone
    if factors is not None:
        frequencies = np.divide(frequencies, factors, dtype=np.float32)
    angles = np.outer(np.arange(positions, dtype=np.float32), frequencies)  # [P, dims / 2]
    both = np.concatenate((angles, angles), 1).astype(np.float64)
    return (
        np.cos(both).astype(np.float32) * np.float32(scale),
        np.sin(both).astype(np.float32) * np.float32(scale),
    )


def axes_of(rope: Rope, dims: int) -> tuple[int, ...]:
    """Return by pairs which of a token's places turns them; ModelError for odd sections."""
    sections, pairs = rope[SECTIONS], dims // 2
    are_counts = isinstance(sections, list | tuple) and all(type(n) is int for n in sections)
    if not are_counts or len(sections) < SEVERAL or sum(sections[:SEVERAL]) != pairs:
        raise ModelError(f"{SECTIONS} is {short(sections)}, for {pairs} pairs", "get another model")
    others = sections[1:SEVERAL]
    if not rope.get(INTERLEAVED):
        return tuple(axis for axis in range(SEVERAL) for _ in range(sections[axis]))
    found = [0] * pairs
    for axis, count in enumerate(others, 1):
        for pair in range(axis, min(count * SEVERAL, pairs), SEVERAL):
            found[pair] = axis
    return tuple(found)


def query_scales(rope: Rope, positions: int) -> Floats:
    """Return what queries are multiplied by at each position: 1 within the original context."""
    passed = np.arange(positions) // rope["original_max_position_embeddings"]
    scales: Floats = (1 + rope["llama_4_scaling_beta"] * np.log1p(passed)).astype(np.float32)
    return scales


def _frequencies(rope: Rope, dims: int, positions: int) -> tuple[Floats, float]:
    """Return the frequencies [dims / 2], and what cos and sin are multiplied with."""
    exponents = np.arange(0, dims, 2, dtype=np.float32) / np.float32(dims)
    periods = np.float32(rope["rope_theta"]) ** exponents
    plain: Floats = (np.float32(1) / periods).astype(np.float32)
    match rope["rope_type"]:
        case "linear":
            return plain / np.float32(rope["factor"]), 1.0
        case "llama3":
            return _llama3(rope, plain), 1.0
        case "yarn":
            return _yarn(rope, plain), _yarn_scale(rope)
        case "longrope":
            return _longrope(rope, plain, positions), _longrope_scale(rope)
        case "proportional":
            turning = int(rope.get("partial_rotary_factor", 1.0) * dims // 2)
            plain[turning:] = 0
            return plain / np.float32(rope.get("factor", 1.0)), 1.0
    return plain, 1.0


def _longrope(rope: Rope, plain: Floats, positions: int) -> Floats:
    """Choose the factors by the context's length, not a text's: one table serves all of it."""
    is_long = positions > rope["original_max_position_embeddings"]
    factors = np.array(rope["long_factor" if is_long else "short_factor"], np.float32)
    return (plain / factors).astype(np.float32)


def _longrope_scale(rope: Rope) -> float:
    given, factor = rope.get("attention_factor"), rope.get("factor") or 1.0
    if given is not None:
        return float(given)
    original = rope["original_max_position_embeddings"]
    return math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0


def _llama3(rope: Rope, plain: Floats) -> Floats:
    """Keep fast turns, stretch slow ones, and blend what lies between."""
    factor, original = rope["factor"], rope["original_max_position_embeddings"]
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    wavelengths = 2 * math.pi / plain
    smooth = (original / wavelengths - low) / (high - low)
    blended = (1 - smooth) * plain / factor + smooth * plain
    slow = np.where(wavelengths > original / low, plain / factor, blended)
    return np.where(wavelengths < original / high, plain, slow).astype(np.float32)


def _yarn(rope: Rope, plain: Floats) -> Floats:
    pairs = len(plain)
    original = rope["original_max_position_embeddings"]

    def pair_of(turns: float) -> float:  # that makes so many turns over the original context
        return pairs * math.log(original / (turns * 2 * math.pi)) / math.log(rope["rope_theta"])

    first = pair_of(rope.get("beta_fast") or BETA_FAST)
    last = pair_of(rope.get("beta_slow") or BETA_SLOW)
    if rope.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, 2 * pairs - 1)
    width = last - first if last != first else 0.001
    ramp = np.clip((np.arange(pairs, dtype=np.float32) - np.float32(first)) / width, 0, 1)
    kept = (1 - ramp) * rope.get("extrapolation_factor", 1.0)
    blended: Floats = (plain / rope["factor"] * (1 - kept) + plain * kept).astype(np.float32)
    return blended


def _yarn_scale(rope: Rope) -> float:
    """Let keys and queries grow a little, to gather the attention that longer texts spread."""
    given = rope.get("attention_factor")
    if given is not None:
        return float(given)

    def scale(multiplier: float) -> float:
        return 1.0 if rope["factor"] <= 1 else 0.1 * multiplier * math.log(rope["factor"]) + 1.0

    over, under = rope.get("mscale"), rope.get("mscale_all_dim")
    return scale(over) / scale(under) if over and under else scale(1.0)
