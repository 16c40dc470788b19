"""The table of engines: who is measured, on what, and how patiently."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

MODEL = "SmolLM2-135M-Instruct"
GGUF = f"{MODEL}.gguf"
OURS = "inpage"
THREADS = 2
CONTEXT = 2048
LONG_CONTEXT = 8192
LONGEST_CONTEXT = 32768
# Prompt lengths by the context a run is named after. Past 2000 tokens there is no room for 64 more.
PROMPT_LENGTHS = {
    128: 128,
    512: 512,
    2000: 1968,
    **{context: context - 80 for context in (LONG_CONTEXT, LONGEST_CONTEXT)},
}
# Methods of globalThis.bench that measure more than generations do (pages/common.js).
MEASURED_BESIDE = ("gpuOps", "submission", "speculation", "glass")


@dataclass(frozen=True)
class Run:
    """A prompt, its first token, and `tokens` more: prefill and decode at this context."""

    context: int
    tokens: int = 64
    repeats: int = 5

    @property
    def prompt_length(self) -> int:
        return PROMPT_LENGTHS[self.context]

    @property
    def is_long(self) -> bool:
        return self.context >= LONG_CONTEXT


@dataclass(frozen=True)
class Engine:
    """An engine to measure: its page, and how long and how often it is asked."""

    key: str
    title: str
    page: str  # URL path below the server
    options: dict[str, Any]  # what its page's load() takes
    runs: tuple[Run, ...] = (Run(128), Run(512))
    checked: int = 16  # ids of the greedy continuation that are compared
    warm_up: bool = True  # each run once, unmeasured; long ones are long enough
    start_ups: int = 5  # of each kind, cold and warm
    limit_s: float = 600  # for one generation, or one start
    notes: tuple[str, ...] = field(default=())
    flags: tuple[str, ...] = ()  # Chromium's, beside those that all have
    beside: tuple[str, ...] = MEASURED_BESIDE


INPAGE = Engine(
    OURS,
    "inpage, WebGPU",
    "bench-inpage.html",
    {"model": MODEL, "device": "gpu"},
    runs=(Run(128), Run(512), Run(2000)),
)
INPAGE_CPU = Engine(
    "inpage-cpu",
    f"inpage, CPU, {THREADS} threads",
    "bench-inpage.html",
    {"model": MODEL, "device": "cpu", "threads": THREADS},
    runs=(Run(128), Run(512), Run(2000)),
)
WLLAMA = Engine(
    "wllama",
    f"wllama, wasm, {THREADS} threads",
    "peers/wllama.html",
    {"model": GGUF, "threads": THREADS, "context": CONTEXT},
)
TRANSFORMERS_WASM = Engine(
    "transformers-wasm",
    f"transformers.js, wasm, {THREADS} threads",
    "peers/transformers.html",
    {"device": "wasm", "threads": THREADS},
)
TRANSFORMERS_WEBGPU = Engine(
    "transformers-webgpu",
    "transformers.js, WebGPU",
    "peers/transformers.html",
    {"device": "webgpu", "threads": 1},
)
PROBE = Engine("adapter", "the adapter alone", "peers/probe.html", {})
# On a software adapter it takes some 10 s a token and minutes for a prompt.
TRANSFORMERS_SOFTWARE = replace(
    TRANSFORMERS_WEBGPU,
    runs=(Run(128, tokens=2, repeats=3), Run(512, tokens=1, repeats=1)),
    checked=3,
    warm_up=False,
    start_ups=1,
    limit_s=900,
    notes=("few tokens and repeats: it is this slow on a software adapter",),
)


def engines(software_adapter: bool, quick: bool = False, only: Sequence[str] = ()) -> list[Engine]:
    """Return the engines to compare, ours first; those of these keys alone where there are any."""
    webgpu = TRANSFORMERS_SOFTWARE if software_adapter else TRANSFORMERS_WEBGPU
    chosen = [INPAGE, INPAGE_CPU, WLLAMA, TRANSFORMERS_WASM, webgpu]
    if only:
        chosen = [engine for engine in chosen if engine.key in only]
    elif quick:
        chosen = chosen[:3]
    return [_quick(engine) for engine in chosen] if quick else chosen


def _quick(engine: Engine) -> Engine:
    runs = tuple(replace(run, tokens=16, repeats=2) for run in engine.runs if run.context < 2000)
    return replace(engine, runs=runs, checked=8, start_ups=1)
