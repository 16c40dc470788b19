"""Verification that this browser and device compute the model as PyTorch does, by its goldens."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.base.dtypes import F16, F32, Q4, Q8
from py_runtime.base.errors import RequestError
from py_runtime.base.html import as_html
from py_runtime.base.messages import Message, message, worded
from py_runtime.base.model_errors import ModelTensorsError
from py_runtime.base.platform import IN_PAGE
from py_runtime.gpu import CPU, Device
from py_runtime.gpu.kernel_target import HALF_KERNELS, MATRIX_KERNELS, KernelTarget
from py_runtime.graph.probes import run_probed, tensors_by_name
from py_runtime.model import Model
from py_runtime.model.goldens import GoldenLogits, Goldens, GoldenText, read_goldens

CLEAR_MARGIN = 0.01  # torch's own next token is a coin's toss when its logit leads by less
# Enough to see every kernel at one token and at many, and quick on a software adapter.
QUICK_TOKENS = 64
QUICK_TEXTS = 1
QUICK_STEPS = 16

Progress = Callable[[str, int, int], None]  # (what is being checked, checks done, checks in all)


@dataclass(frozen=True)
class Precision:
    """The largest acceptable differences, in units of the RMS of torch's values."""

    relative_rms: float
    # Of a single number: a lost workgroup or a wrong lane spoils few numbers, but those by as much
    # as they are large; among fifty thousand logits the RMS would hardly show it.
    worst: float
    clear_margin: float


# Float32 sums taken in another order, and exp and sqrt as WebGPU allows them, come to 1e-6 to 1e-5
# after thirty layers; a device that computed in float16 on the sly would come to 1e-3 and more.
FLOATS = Precision(1e-3, 1e-2, CLEAR_MARGIN)
# Caches of halves come to 6e-4 in the layers of the default model, and to 1.5e-3 in its logits.
# Products by matrix units must stay within the same.
HALVES = Precision(5e-3, 5e-2, 10 * CLEAR_MARGIN)
# Products in halves come to 5e-3 in its layers, and to 1.5e-2 in its logits (docs/speed.md).
HALF_PRODUCTS = Precision(2e-2, 1e-1, 10 * CLEAR_MARGIN)
BLOCKS_OF_8 = Precision(5e-2, 5e-1, 50 * CLEAR_MARGIN)
BLOCKS_OF_4 = Precision(5e-1, 5.0, 200 * CLEAR_MARGIN)
BY_CACHES = {F32.name: FLOATS, F16.name: HALVES, Q8.name: BLOCKS_OF_8, Q4.name: BLOCKS_OF_4}


def precision_of(target: KernelTarget) -> Precision:
    """Return how far from torch a model may be, given its kernels and how caches are stored."""
    by_products = {HALF_KERNELS: HALF_PRODUCTS, MATRIX_KERNELS: HALVES}.get(target.kernels, FLOATS)
    return max(BY_CACHES[target.kv], by_products, key=lambda precision: precision.relative_rms)


@dataclass(frozen=True)
class Difference:
    """A difference from torch's values; infinite if something is not a number."""

    relative_rms: float  # RMS of the differences, in units of the RMS of torch's numbers
    worst: float  # the largest difference, in the same units
    allowed: Precision = FLOATS

    @property
    def ok(self) -> bool:
        return self.relative_rms <= self.allowed.relative_rms and self.worst <= self.allowed.worst


def difference(
    name: str, got: np.ndarray, wanted: np.ndarray, allowed: Precision = FLOATS
) -> Difference:
    """Compare with torch's values; ModelTensorsError if shapes differ.

    The difference is infinite if something is NaN or infinite.
    """
    if got.shape != wanted.shape:
        raise ModelTensorsError(
            f"the golden of {name} has the shape {list(wanted.shape)}, but the graph's result "
            f"{list(got.shape)}"
        )
    deviation = got.astype(np.float64) - wanted
    if not np.isfinite(deviation).all():
        return Difference(math.inf, math.inf, allowed)
    unit = math.sqrt(np.square(wanted, dtype=np.float64).mean()) or 1.0
    relative_rms = math.sqrt(np.square(deviation).mean()) / unit
    return Difference(relative_rms, float(np.abs(deviation).max()) / unit, allowed)


@dataclass(frozen=True)
class LayerCheck:
    """The hidden state after one layer, compared with torch's."""

    layer: str  # "embedding", "layers.0", …, "norm"
    relative_rms: float
    worst: float
    ok: bool


@dataclass(frozen=True)
class LengthCheck:
    """The logits after a prompt of one length, compared with torch's."""

    tokens: int  # of the prompt
    relative_rms: float  # of the logits after it
    worst: float
    ok: bool


@dataclass(frozen=True)
class TextCheck:
    """A greedy answer, compared with torch's."""

    prompt: str
    tokens: int  # that could be compared: past a coin's toss texts may go their own ways
    identical: bool
    first_difference: int | None  # the first of these tokens that is another than torch's


@dataclass
class VerifyReport:
    """All checks and their summary."""

    layers: list[LayerCheck] = field(default_factory=list)  # in chain order
    lengths: list[LengthCheck] = field(default_factory=list)
    texts: list[TextCheck] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)  # layers that the graph does not name
    ok: bool = False
    worst_layer: str | None = None  # the one with the largest difference
    first_wrong_layer: str | None = None  # where it begins, when it is too large
    messages: list[Message] = field(default_factory=list)  # what people are told of it
    summary: str = ""  # the same in English
    table: str = ""  # of the layers, as Markdown
    adapter: str = ""
    seconds: float = 0.0

    def _repr_html_(self) -> str:
        head = ("layer", "relative RMS", "worst", "")
        rows = [
            (each.layer, f"{each.relative_rms:.1e}", f"{each.worst:.1e}", "✓" if each.ok else "✗")
            for each in self.layers
        ]
        return as_html("Verification", [self.summary, self.adapter], head, *rows)


async def verify(
    model: Model,
    progress: Progress | None = None,
    cancel: CancelToken | None = None,
    thorough: bool = False,
) -> VerifyReport:
    """Run the goldens: one prompt layer by layer, the logits of others, greedy continuations."""
    async with model.idle():  # an answer in the making would see its cache written over
        with model.while_loaded():
            return await verify_idle(model, progress, cancel, thorough)


async def verify_idle(
    model: Model,
    progress: Progress | None = None,
    cancel: CancelToken | None = None,
    thorough: bool = False,
) -> VerifyReport:
    """Run the same for a caller that holds `model.idle()`."""
    if model.changes.are_any:
        raise RequestError("remove the adapters first: they change what is computed", "model")
    started = time.perf_counter()
    goldens = _chosen(await read_goldens(model.folder, model.store), thorough)
    checks = _Checks(model, goldens, progress, cancel or CancelToken())
    report = VerifyReport()
    with model.plainly():
        await checks.all(report)
    _conclude(report, model.graph.device.kind)
    report.table = _table(report)
    report.adapter = adapter_name(model.graph.device)
    report.seconds = time.perf_counter() - started
    return report


def adapter_name(device: Device) -> str:
    """Return the adapter's name as people know it; "" if the browser hides it."""
    adapter = device.adapter
    if device.kind == CPU:
        return worded(message("processor", threads=device.threads))
    known = adapter.description if IN_PAGE else adapter.device  # the other is a number, a version
    return known or f"{adapter.vendor} {adapter.architecture}".strip()


def _chosen(goldens: Goldens, thorough: bool) -> Goldens:
    if thorough:
        return goldens
    texts = [
        GoldenText(text.prompt, text.continuation[:QUICK_STEPS], text.margins[:QUICK_STEPS])
        for text in goldens.texts[:QUICK_TEXTS]
    ]
    logits = [golden for golden in goldens.logits if len(golden.tokens) <= QUICK_TOKENS]
    return Goldens(goldens.hidden_tokens, goldens.hidden, logits, texts)


class _Checks:
    """The checks in order; the caller can stop them between two calls of the graph."""

    def __init__(
        self, model: Model, goldens: Goldens, progress: Progress | None, cancel: CancelToken
    ) -> None:
        self.model = model
        self.session = model.session
        self.goldens = goldens
        self._allowed = precision_of(model.graph.target)
        self._progress = progress
        self._cancel = cancel
        self._done = 0
        self._total = len(goldens.hidden) + len(goldens.logits)
        self._total += sum(len(text.continuation) for text in goldens.texts)
        self._advance("layers", 0)

    def _advance(self, what: str, checks: int) -> None:
        self._cancel.check()
        self._done += checks
        if self._progress is not None:
            self._progress(what, self._done, self._total)

    async def all(self, report: VerifyReport) -> None:
        await self.layers(report)
        for golden in self.goldens.logits:
            report.lengths.append(await self.logits(golden))
        for text in self.goldens.texts:
            report.texts.append(await self.text(text))

    async def layers(self, report: VerifyReport) -> None:
        hidden, tokens = self.goldens.hidden, self.goldens.hidden_tokens
        named = tensors_by_name(self.model.graph.program)
        found = [name for name in hidden if len(named.get(name, [])) == 1]
        report.not_checked = [name for name in hidden if name not in found]
        if found:
            # The session opens a device anew that was lost since; the probed run would fail on it.
            await self.session.logits_after(tokens, self._cancel)
            self.session.forget()  # from here on the cache is written over
            graph, inputs = self.model.graph, await self.session.inputs(tokens, 0)
            for name, got in (await run_probed(graph, inputs, found)).items():
                last_row = got.reshape(-1, got.shape[-1])[-1]  # of [1, S, width] or [1, width]
                d = difference(str(name), last_row, hidden[str(name)], self._allowed)
                report.layers.append(LayerCheck(str(name), d.relative_rms, d.worst, d.ok))
        self._advance("layers", len(hidden))

    async def logits(self, golden: GoldenLogits) -> LengthCheck:
        length = len(golden.tokens)
        self.session.forget()  # all of them are to be computed
        got = await self.session.logits_after(golden.tokens, self._cancel)
        d = difference(f"the logits after {length} tokens", got, golden.logits, self._allowed)
        self._advance("logits", 1)
        return LengthCheck(length, d.relative_rms, d.worst, d.ok)

    async def text(self, golden: GoldenText) -> TextCheck:
        prompt, count = self.model.tokenizer.decode(golden.prompt), len(golden.continuation)
        for step, wanted in enumerate(golden.continuation):
            tokens = golden.prompt + golden.continuation[:step]
            logits = await self.session.logits_after(tokens, self._cancel)
            if int(logits.argmax()) != wanted:
                self._advance("text", count - step)
                if golden.margins[step] < self._allowed.clear_margin:
                    return TextCheck(prompt, step, True, None)
                return TextCheck(prompt, step + 1, False, step)
            self._advance("text", 1)
        return TextCheck(prompt, count, True, None)


# In words --------------------------------------------------------------------------------------


def _table(report: VerifyReport) -> str:
    rows = [f"| {row.layer} | {row.relative_rms:.1e} | {row.worst:.1e} |" for row in report.layers]
    return "\n".join(["| Layer | Relative error (RMS) | Worst |", "|---|--:|--:|", *rows])


def _conclude(report: VerifyReport, kind: str) -> None:
    wrong_layers = [check for check in report.layers if not check.ok]
    report.worst_layer = _worst_layer(report.layers)
    report.first_wrong_layer = wrong_layers[0].layer if wrong_layers else None
    faults = [_layer_fault(wrong_layers[0], report)] if wrong_layers else []
    faults += [_result_fault(check) for check in report.lengths if not check.ok]
    faults += [
        message("answer_differs", place=check.first_difference + 1)
        for check in report.texts
        if check.first_difference is not None
    ]
    report.ok = not faults
    which = "processor_" if kind == CPU else ""
    where = "in_page" if IN_PAGE else "natively"
    if faults:
        report.messages = [message(f"{which}wrong_{where}", faults=faults)]
    else:
        report.messages = [message(f"{which}verified_{where}", findings=_findings(report))]
    if report.not_checked:
        report.messages.append(message("layers_not_checked", names=report.not_checked))
    report.summary = worded(report.messages, " ")


def _worst_layer(layers: list[LayerCheck]) -> str | None:
    return max(layers, key=lambda check: check.relative_rms).layer if layers else None


def _layer_fault(check: LayerCheck, report: VerifyReport) -> Message:
    layer = _layer_message(check.layer, report)
    if not math.isfinite(check.relative_rms):
        return message("layer_not_finite", layer=layer)
    return message("layer_differs", layer=layer, share=check.relative_rms)


def _result_fault(check: LengthCheck) -> Message:
    if not math.isfinite(check.relative_rms):
        return message("results_not_finite", tokens=check.tokens)
    return message("results_differ", tokens=check.tokens, share=check.relative_rms)


def _layer_message(layer: str, report: VerifyReport) -> Message:
    number = layer.removeprefix("layers.")
    if number != layer and number.isdecimal():
        count = sum(check.layer.startswith("layers.") for check in report.layers)
        return message("layer_numbered", number=int(number) + 1, count=count)
    if layer in ("embedding", "norm"):
        return message("layer_embedding" if layer == "embedding" else "layer_last_norm")
    return message("layer_named", name=layer)


def _findings(report: VerifyReport) -> list[Message]:
    findings = []
    if report.layers:
        worst = max(check.relative_rms for check in report.layers)
        findings.append(message("largest_layer_difference", share=worst))
    elif report.lengths:
        worst = max(check.relative_rms for check in report.lengths)
        findings.append(message("largest_result_difference", share=worst))
    compared = sum(check.tokens for check in report.texts)
    if compared:
        findings.append(message("same_tokens", tokens=compared, answers=len(report.texts)))
    return findings
