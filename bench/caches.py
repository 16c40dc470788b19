"""The types of caches of keys and values, compared: memory, agreement, and what a token costs.

python -m bench.caches [--threads 2] [--positions 2000] [--shape llama-3.2-1b] [--context 32768]

The default model reads a long text token by token, on the CPU, with each type: at each position its
likeliest next token is compared with that of halves and of floats. Tokens are timed at the end of
several stretches of it. The memory is that of a shape, at a long context.
"""

import argparse
import asyncio
import json
import statistics
import time
from dataclasses import dataclass

import numpy as np

import inpage
from bench.synthetic import SHAPES, SyntheticSource
from export.default_model import NAME
from export.sources import Quantisation
from py_runtime.base.cancel import CancelToken
from py_runtime.base.dtypes import CACHE_DTYPES, F16, F32
from py_runtime.decoder.program import write_decoder
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.graph.buffers import GUARANTEED_LIMITS, plan_buffers
from py_runtime.graph.builder import Builder
from py_runtime.model import writer
from py_runtime.passes import DEFAULT_PASSES, run_passes
from py_runtime.tokens import Tokenizer
from tools.files import ROOT

MODEL = ROOT / "models" / NAME
TEXT = ROOT / "docs" / "architecture.md"
CONTEXTS = (128, 512, 1024, 1900)  # behind which tokens are timed
TIMED = 64


@dataclass(frozen=True)
class Reading:
    """A text as a model read it with caches of one type."""

    logits: np.ndarray  # [positions, V], in halves
    likeliest: np.ndarray  # [positions], of the logits as they came
    seconds: list[float]  # of each token


async def read(kv: str, text: list[int], threads: int) -> Reading:
    """Read a text token by token."""
    model = writer(await inpage.load(str(MODEL), device="cpu", threads=threads, kv=kv))
    rows, likeliest, seconds = [], [], []
    try:
        for end in range(1, len(text) + 1):
            begun = time.perf_counter()
            logits = await model.session.logits_after(text[:end], CancelToken())
            seconds.append(time.perf_counter() - begun)
            rows.append(logits.astype(np.float16))
            likeliest.append(int(logits.argmax()))
    finally:
        model.unload()
    return Reading(np.array(rows), np.array(likeliest), seconds)


def agreement(one: Reading, other: Reading) -> float:
    """Return the share of positions at which both find the same token likeliest."""
    return float((one.likeliest == other.likeliest).mean())


def divergence(of: Reading, true: Reading) -> float:
    """Return the mean Kullback-Leibler divergence of the next tokens' odds, in nats."""
    total = 0.0
    for row, wanted in zip(of.logits, true.logits, strict=True):
        p, q = (_log_odds(each.astype(np.float64)) for each in (wanted, row))
        total += float((np.exp(p) * (p - q)).sum())
    return total / len(true.logits)


def _log_odds(logits: np.ndarray) -> np.ndarray:
    above = logits - logits.max()
    return np.asarray(above - np.log(np.exp(above).sum()))


def memory(shape: str, context: int, kv: str) -> tuple[int, int]:
    """Return the bytes of a shape's caches, and of its whole graph."""
    source = SyntheticSource(shape, "none", SHAPES[shape], {}, Quantisation("q4gsw"))
    config = source.decoder_config(context)
    program = write_decoder(config, source.kinds(config), shape)
    target = KernelTarget(kv=kv)
    builder = Builder(run_passes(program, target, DEFAULT_PASSES), GUARANTEED_LIMITS, target)
    builder.build_ops()
    report = plan_buffers(builder).report
    return report.state, report.peak


def long_text(positions: int) -> list[int]:
    """Return the ids of a text, as many as positions are asked for."""
    tokenizer = Tokenizer.from_json(json.loads((MODEL / "tokenizer.json").read_text()))
    found: list[int] = tokenizer.encode(TEXT.read_text(encoding="utf-8"))[:positions]
    return found


async def main() -> None:
    """Measure and print tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.caches")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--positions", type=int, default=2000)
    parser.add_argument("--shape", choices=SHAPES, default="llama-3.2-1b")
    parser.add_argument("--context", type=int, default=32768)
    options = parser.parse_args()

    print(
        f"| {options.shape}, context {options.context:,} | caches | in all |\n| --- | ---: | ---: |"
    )
    for kv in CACHE_DTYPES:
        state, peak = memory(options.shape, options.context, kv)
        print(f"| {kv} | {state / 1e6:,.0f} MB | {peak / 1e6:,.0f} MB |")
    text = long_text(options.positions)
    readings = {kv: await read(kv, text, options.threads) for kv in CACHE_DTYPES}
    ends = [end for end in CONTEXTS if end + TIMED <= len(text)]
    print(
        f"\n| {len(text):,} positions | top-1 as f16 | as f32 | divergence from f32 | ms a token "
        f"behind {' / '.join(map(str, ends))} |\n| --- | ---: | ---: | ---: | ---: |"
    )
    for kv, each in readings.items():
        alike = [agreement(each, readings[other.name]) for other in (F16, F32)]
        times = [1e3 * statistics.median(each.seconds[end : end + TIMED]) for end in ends]
        off = divergence(each, readings[F32.name])
        cost = " / ".join(f"{ms:.1f}" for ms in times)
        print(f"| {kv} | {alike[0]:.2%} | {alike[1]:.2%} | {off:.1e} | {cost} |")


if __name__ == "__main__":
    asyncio.run(main())
