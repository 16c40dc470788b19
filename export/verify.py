"""The check of an exported graph, run natively, against torch, on random and real prompts."""

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from export.decoder import Decoder
from export.pipeline import GOLDEN_CONTEXT, Prepared
from export.prompts import golden_prompts, sample_tokens
from export.reference import (
    GOLDEN_LENGTHS,
    HIDDEN_LENGTH,
    greedy,
    hidden_states,
    last_logits,
    perplexity,
    reference_decoder,
)
from py_runtime.app.software_gpu import use_software_if_alone
from py_runtime.base.sizes import percent
from py_runtime.folder.on_disk import verify_files
from py_runtime.gpu import request_device
from py_runtime.graph.probes import run_probed
from py_runtime.model import Model
from py_runtime.model.verify import (
    Difference,
    Precision,
    adapter_name,
    difference,
    precision_of,
)

STEPS = 32


@dataclass
class Verification:
    """The result of the comparisons; sound where there are no faults."""

    rows: dict[str, str] = field(default_factory=dict)  # of a table
    faults: list[str] = field(default_factory=list)  # what differs by more than py_runtime allows

    def compare(self, row: str, what: str, found: Difference) -> None:
        self.rows[row] = f"relative RMS {found.relative_rms:.1e}"
        if not found.ok:
            self.faults.append(f"{what} by {percent(found.relative_rms)}")


def verify_model(prepared: Prepared, folder: Path) -> Verification:
    """Differences layer by layer and by prompt length, greedy tokens, perplexity."""
    use_software_if_alone()
    verify_files(folder)
    config = replace(
        prepared.graph.config, context=min(prepared.graph.config.context, GOLDEN_CONTEXT)
    )
    stored = reference_decoder(prepared.source, config)
    result = asyncio.run(_compare(prepared, folder, stored))
    tokens = sample_tokens(prepared.source.tokenizer)[: config.context]
    after = perplexity(stored, tokens)
    del stored
    before = perplexity(reference_decoder(prepared.source, config, as_stored=False), tokens)
    result.rows["perplexity"] = f"{before:.3f} in the source, {after:.3f} as stored"
    return result


async def _compare(prepared: Prepared, folder: Path, decoder: Decoder) -> Verification:
    device = await request_device()
    model = await Model.load(device, str(folder))
    result = Verification({"adapter": adapter_name(device)})
    allowed = precision_of(model.graph.target)
    rng = np.random.default_rng(0)

    def random_tokens(length: int) -> list[int]:
        tokens: list[int] = rng.integers(0, prepared.graph.config.vocabulary, length).tolist()
        return tokens

    layer_tokens = random_tokens(min(HIDDEN_LENGTH, decoder.config.context))
    await _compare_layers(model, decoder, layer_tokens, result)
    for length in GOLDEN_LENGTHS:
        if length <= decoder.config.context:
            tokens = random_tokens(length)
            wanted_logits = last_logits(decoder, tokens)
            found = difference("logits", await model.prefill(tokens), wanted_logits, allowed)
            result.compare(f"{length} random tokens", f"the logits after {length} tokens", found)
    same = total = 0
    for prompt in golden_prompts(prepared.source.tokenizer):
        if len(prompt) + STEPS > decoder.config.context:
            continue
        wanted, margins = greedy(decoder, prompt, STEPS)
        got = [token async for token in model.greedy(prompt, STEPS)]
        same, total = same + agreement(got, wanted, margins, allowed), total + STEPS
    result.rows["greedy tokens"] = f"{same} of {total} as torch's, where its margin is clear"
    if same < total:
        result.faults.append(f"{total - same} of {total} greedy tokens")
    model.unload()
    return result


async def _compare_layers(
    model: Model, decoder: Decoder, tokens: list[int], result: Verification
) -> None:
    """Compare each layer; the largest difference makes the row, the first wrong layer the fault."""
    wanted = hidden_states(decoder, tokens)
    probed = await run_probed(model.graph, [np.array([tokens]), np.array([0])], wanted)
    found = {
        name: difference(
            name, probed[name].reshape(-1, row.size)[-1], row, precision_of(model.graph.target)
        )
        for name, row in wanted.items()
    }
    worst = max(found, key=lambda name: found[name].relative_rms)
    result.rows["layers"] = f"relative RMS at most {found[worst].relative_rms:.1e} ({worst})"
    wrong = [name for name in wanted if not found[name].ok]
    if wrong:
        share = percent(found[wrong[0]].relative_rms)
        result.faults.append(f"{wrong[0]}, the first of {len(wrong)} layers, by {share}")


def agreement(got: list[int], wanted: list[int], margins: list[float], allowed: Precision) -> int:
    """Tokens that agree; from the first unclear step on, other text is not a fault."""
    for step, (token, reference, margin) in enumerate(zip(got, wanted, margins, strict=True)):
        if token != reference:
            return len(wanted) if margin < allowed.clear_margin else step
    return len(wanted)
