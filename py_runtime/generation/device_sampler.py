"""Sampling on the GPU: the kernel of shaders/sampling/sample.wgsl, its settings and its buffers."""

from collections.abc import Sequence

import numpy as np

from py_runtime.base.shapes import round_up
from py_runtime.gpu import (
    UNIFORM_USAGE,
    BindGroup,
    BindGroupSpec,
    Binding,
    Buffer,
    BufferSpec,
    Device,
    Dispatch,
    Pipeline,
    PipelineSpec,
    Write,
)
from py_runtime.gpu.kernel_sources import kernel_source
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.gpu.shader_figures import figures_of, offset_of
from py_runtime.live.uniforms import params_layout
from py_runtime.sampling import SamplingSettings

MAX_DRAWS = 256  # tokens of one batch
MAX_CHANGES = 64  # words of the arena that follow the position
NO_MIN_P = -1e30  # its logarithm would be minus infinity
# Nothing but exact ties is left to chance from here on, and a float32 still holds its inverse.
MIN_TEMPERATURE = 1e-20
WORD = 4
NOTHING_DRAWN = np.zeros(2, np.uint32)  # and nothing ended

NAME = "sampling/sample"
OWNER = "sampler"  # of the buffers, for who looks at the memory
IN_PROMPT = figures_of(NAME)["IN_PROMPT"]
NO_TOKEN = figures_of(NAME)["NO_TOKEN"]  # the logits held no number
NARROW, WIDE, WIDEST = (
    figures_of(f"sampling/fragments/size_{size}")["WORKGROUP"]
    for size in ("narrow", "wide", "widest")
)
LAYOUT = params_layout(kernel_source(NAME, {"size": "narrow"}))  # of all sizes
STATE_HEADER = offset_of(NAME, "State", "tokens") // WORD


class DeviceSampler:
    """The sampling kernel of one graph's logits; use `await DeviceSampler.create(...)`."""

    def __init__(self, device: Device, vocabulary: int, buffers: dict[str, Buffer]) -> None:
        self._device = device
        self.vocabulary = vocabulary
        self._buffers = buffers
        self._changes: np.ndarray | None = None  # of the last batch: the GPU has them
        self._groups: list[BindGroup] = []
        self._pipeline: Pipeline
        self._others: dict[str, Buffer]
        self.step: Dispatch

    @classmethod
    async def create(
        cls,
        device: Device,
        target: KernelTarget,
        vocabulary: int,
        logits: Buffer,
        next_input: Buffer,
        arena: Buffer,
    ) -> "DeviceSampler":
        words = vocabulary * WORD
        # On the CPU their exponentials follow, and both are whole rows of a workgroup's lanes.
        strands = 2 * round_up(words, NARROW * WORD) if device.kind == "cpu" else words
        specs = {
            "params": BufferSpec("sampling settings", LAYOUT.struct.size, UNIFORM_USAGE),
            "bias": BufferSpec("sampling logit bias", words),
            "history": BufferSpec("sampling history", words),
            "adjusted": BufferSpec("sampling adjusted logits", strands),
            "state": BufferSpec("sampling state", (STATE_HEADER + MAX_DRAWS) * WORD),
            "arena_changes": BufferSpec("sampling arena changes", MAX_CHANGES * 2 * WORD),
        }
        created = await device.create_buffers(list(specs.values()), OWNER)
        own = dict(zip(specs, created, strict=True))
        sampler = cls(device, vocabulary, own)
        sampler._others = {"next_input": next_input, "arena": arena}
        try:
            await sampler._compile(target)
            sampler.step = await sampler.step_from(logits)
        except BaseException:
            device.destroy_buffers(created)
            raise
        return sampler

    async def _compile(self, target: KernelTarget) -> None:
        self._kernel = kernel_source(NAME, {"size": _size_for(target, self._device)})
        pipelines = [PipelineSpec(NAME, self._kernel.source, kernel=self._kernel)]
        (self._pipeline,) = await self._device.create_compute_pipelines(pipelines)

    async def step_from(self, logits: Buffer) -> Dispatch:
        """Return the step that draws from these logits, [rows, V]."""
        buffers = {**self._buffers, **self._others, "logits": logits}
        bindings = tuple(Binding(buffers[name]) for name in self._kernel.bindings)
        (group,) = await self._device.create_bind_groups(
            [BindGroupSpec(NAME, self._pipeline, bindings, self._kernel.bindings)]
        )
        self._groups.append(group)
        return Dispatch(NAME, self._pipeline, group)

    @property
    def state(self) -> Buffer:
        return self._buffers["state"]

    def begin(
        self,
        settings: SamplingSettings,
        prompt: Sequence[int],
        answer: Sequence[int],
        seed: int,
        draws: int,
    ) -> list[Write]:
        """Return the uploads that start an answer, or resume one after some random numbers."""
        penalties = (settings.frequency_penalty, settings.presence_penalty)
        has_history = settings.repetition_penalty != 1 or any(penalties)
        self._changes = None  # the GPU has no settings of this answer yet
        self._fields = {
            "vocabulary": self.vocabulary,
            "greedy": int(settings.temperature == 0),
            "top_k": min(settings.top_k, self.vocabulary),  # all of them: off
            "top_p": settings.top_p,
            "log_min_p": float(np.log(settings.min_p)) if settings.min_p > 0 else NO_MIN_P,
            "inverse_temperature": _inverse(settings.temperature),
            "repetition_penalty": settings.repetition_penalty,
            "frequency_penalty": settings.frequency_penalty,
            "presence_penalty": settings.presence_penalty,
            "has_history": int(has_history),
            "has_bias": int(bool(settings.logit_bias)),
            "seed": (seed ^ seed >> 32) % 2**32,
        }
        writes = [Write(self.state, np.array([*NOTHING_DRAWN, draws], np.uint32))]
        if has_history:
            history = np.zeros(self.vocabulary, np.uint32)
            history[np.array(prompt, np.int64)] = IN_PROMPT
            np.add.at(history, np.array(answer, np.int64), 1)
            writes.append(Write(self._buffers["history"], history))
        if settings.logit_bias:
            bias = np.zeros(self.vocabulary, np.float32)
            bias[list(settings.logit_bias)] = list(settings.logit_bias.values())
            writes.append(Write(self._buffers["bias"], bias))
        return writes

    def batch(self, changes: np.ndarray) -> list[Write]:
        """Return the uploads before a batch; changes: uint32 [n, 2] of (arena word, increment)."""
        writes = [Write(self.state, NOTHING_DRAWN)]
        if self._changes is not changes:
            self._changes = changes
            writes.append(self._params(changes=len(changes), row_stride=0))
            if len(changes):
                writes.append(Write(self._buffers["arena_changes"], changes))
        return writes

    def verification(self, proposed: Sequence[int]) -> list[Write]:
        """Return the uploads before rows of logits are drawn from that follow proposed tokens.

        The last one drawn has no proposal.
        """
        self._changes = None
        tokens = np.array([*proposed, NO_TOKEN], np.uint32)
        return [
            Write(self.state, NOTHING_DRAWN),
            Write(self.state, tokens, STATE_HEADER * WORD),
            self._params(changes=0, row_stride=self.vocabulary),
        ]

    def _params(self, **more: int) -> Write:
        packed = LAYOUT.pack({**self._fields, **more})
        return Write(self._buffers["params"], np.frombuffer(packed, np.uint8))

    def unload(self) -> None:
        self._device.release(self._groups)
        self._device.destroy_buffers(list(self._buffers.values()))


def _inverse(temperature: float) -> float:
    return 1 / max(temperature, MIN_TEMPERATURE) if temperature else 1.0  # 0: greedy


def _size_for(target: KernelTarget, device: Device) -> str:
    """Return the size of the workgroup.

    Measured on an H200 with a 1B model: a token takes 6 to 10 % longer with the wide one than with
    the widest, and twice as long with the narrow one.
    """
    most = device.limits["max_compute_invocations_per_workgroup"]
    if not target.wide or most < WIDE:
        return "narrow"
    return "widest" if most >= WIDEST else "wide"
