"""Runs an exported graph natively against torch, on random and real prompts."""

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np

from export.decoder import Decoder
from export.pipeline import GOLDEN_CONTEXT, Prepared
from export.prompts import golden_prompts, sample_tokens
from export.reference import GOLDEN_LENGTHS, greedy, last_logits, perplexity, reference_decoder
from py_runtime.folder.files import verify_files
from py_runtime.gpu import request_device
from py_runtime.model import Model
from tools.software_gpu import use_software_if_alone

CLEAR_MARGIN = 0.01  # torch itself may go either way below it
STEPS = 32


def verify_model(prepared: Prepared, folder: Path) -> dict[str, str]:
    """The rows of a table: differences by prompt length, greedy tokens, perplexity."""
    use_software_if_alone()
    verify_files(folder)
    config = replace(
        prepared.graph.config, context=min(prepared.graph.config.context, GOLDEN_CONTEXT)
    )
    stored = reference_decoder(prepared.source, config)
    rows = asyncio.run(_compare(prepared, folder, stored))
    tokens = sample_tokens(prepared.source.tokenizer)[: config.context]
    after = perplexity(stored, tokens)
    del stored
    before = perplexity(reference_decoder(prepared.source, config, as_stored=False), tokens)
    rows["perplexity"] = f"{before:.3f} in the source, {after:.3f} as stored"
    return rows


async def _compare(prepared: Prepared, folder: Path, decoder: Decoder) -> dict[str, str]:
    device = await request_device()
    model = await Model.load(device, str(folder))
    rng = np.random.default_rng(0)
    rows = {"adapter": device.adapter.device or device.adapter.vendor}
    for length in GOLDEN_LENGTHS:
        if length <= decoder.config.context:
            tokens = rng.integers(0, prepared.graph.config.vocabulary, length).tolist()
            difference = relative_rms(await model.prefill(tokens), last_logits(decoder, tokens))
            rows[f"{length} random tokens"] = f"relative RMS {difference:.1e}"
    same = total = 0
    for prompt in golden_prompts(prepared.source.tokenizer):
        if len(prompt) + STEPS > decoder.config.context:
            continue
        wanted, margins = greedy(decoder, prompt, STEPS)
        got = [token async for token in model.greedy(prompt, STEPS)]
        agreeing = agreement(got, wanted, margins)
        same, total = same + agreeing, total + STEPS
    rows["greedy tokens"] = f"{same} of {total} as torch's, where its margin is clear"
    model.unload()
    return rows


def relative_rms(got: np.ndarray, wanted: np.ndarray) -> float:
    wanted = wanted.astype(np.float64)
    return float(np.sqrt(((got - wanted) ** 2).mean() / (wanted**2).mean()))


def agreement(got: list[int], wanted: list[int], margins: list[float]) -> int:
    """Tokens that agree; from the first unclear step on, other text is no fault."""
    for step, (token, reference, margin) in enumerate(zip(got, wanted, margins, strict=True)):
        if token != reference:
            return len(wanted) if margin < CLEAR_MARGIN else step
    return len(wanted)
