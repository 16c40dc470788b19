"""Runs whose activations are kept, changed by functions of numpy, or both."""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.base.shapes import numel
from py_runtime.base.sizes import in_words
from py_runtime.glass.cache import ActivationCache
from py_runtime.glass.given import tokens_of
from py_runtime.glass.hooked import HookedGraph, load_hooked
from py_runtime.glass.patterns import Pattern, read_sinks
from py_runtime.glass.points import (
    NORMALISED,
    PATTERN,
    POSITIONS,
    SCALE,
    SCORES,
    VALUE,
    HookPoint,
    NamesFilter,
    chosen,
)
from py_runtime.glass.workspace import Workspace, looking
from py_runtime.graph.probes import run_probed
from py_runtime.model import Model

MAX_BYTES = 1 << 30  # of activations that are brought to the host
Progress = Callable[[int, int], None]
# A function of (activation, hook) → another activation, or None to leave it.
HookFunction = Callable[[np.ndarray, "Hook"], Any]
FwdHooks = Sequence[tuple[NamesFilter, HookFunction]]


@dataclass
class Hook:
    """The place that a hook function is called at.

    Long texts run in chunks: row i of the activation is of position `start + i`. What the function
    keeps in `ctx` is there for the next chunk.
    """

    name: str
    start: int = 0
    ctx: dict[str, Any] = field(default_factory=dict)

    def layer(self) -> int:
        return int(self.name.split(".")[1])


def hooks(model: Model) -> dict[str, tuple[int | str, ...]]:
    """Return the names of all hooks with their shapes; "pos" stands for the number of tokens."""
    return {name: point.shape for name, point in Workspace.of(model).points.items()}


async def run_with_cache(
    model: Model,
    given: Any,
    names_filter: NamesFilter = None,
    *,
    return_type: str | None = "logits",
    prepend_bos: bool | None = None,
    fwd_hooks: FwdHooks = (),
    progress: Progress = lambda done, total: None,
    cancel: CancelToken | None = None,
) -> tuple[np.ndarray | None, ActivationCache]:
    """Run a text, messages or tokens; return the logits [1, S, V] and the activations by name.

    `names_filter` is a name, a pattern like "blocks.*.hook_resid_post", a list, or a function of a
    name; None keeps everything. With `return_type=None` there are no logits, which saves much of
    the time. The chat goes on afterwards as if nothing had been.
    """
    if return_type not in ("logits", None):
        raise RequestError('return_type must be "logits" or None', "return_type")
    run = _Run(model, tokens_of(model, given, prepend_bos), cancel or CancelToken(), progress)
    run.keep(chosen(run.space.points, names_filter))
    run.call(fwd_hooks)
    logits = await run.result(with_logits=return_type is not None)
    return logits, ActivationCache(run.activations())


async def run_with_hooks(
    model: Model,
    given: Any,
    fwd_hooks: FwdHooks = (),
    *,
    return_type: str | None = "logits",
    prepend_bos: bool | None = None,
    progress: Progress = lambda done, total: None,
    cancel: CancelToken | None = None,
) -> np.ndarray | None:
    """Run a text with functions (activation, hook) → None or another activation; return logits.

    Each comes with a name, a pattern, or a function that chooses names. Activations are arrays of
    numpy, [1, S, ...]; what a function returns takes their place for all that follows.
    """
    run = _Run(model, tokens_of(model, given, prepend_bos), cancel or CancelToken(), progress)
    run.call(fwd_hooks)
    return await run.result(with_logits=return_type is not None)


class _Run:
    """One run; use `keep` and `call`, then `result`."""

    def __init__(
        self, model: Model, tokens: list[int], cancel: CancelToken, progress: Progress
    ) -> None:
        self.model = model
        self.tokens = tokens
        self.space = Workspace.of(model)
        self._cancel = cancel
        self._progress = progress
        self._kept: list[HookPoint] = []
        self._called: list[tuple[HookPoint, HookFunction, Hook]] = []
        self._rows: dict[str, list[np.ndarray]] = {}  # of each kept point, chunk by chunk
        self._stream: list[np.ndarray] = []
        self._seen: dict[int, np.ndarray] = {}  # values that functions were shown
        self._sinks: dict[int, np.ndarray | None] = {}

    def keep(self, points: Sequence[HookPoint]) -> None:
        self._kept = list(points)
        count = len(self.tokens)
        nbytes = sum(
            4 * numel([count if dim == POSITIONS else int(dim) for dim in point.shape])
            for point in points
        )
        if nbytes > MAX_BYTES:
            raise RequestError(
                f"{len(points)} activations of {count} tokens take {in_words(nbytes)}, more than "
                f"{in_words(MAX_BYTES)}: choose some by names_filter, or take a shorter text",
                "names_filter",
            )

    def call(self, fwd_hooks: FwdHooks) -> None:
        for names, function in fwd_hooks:
            if not callable(function):
                raise RequestError("a hook is (name, function)", "fwd_hooks")
            for point in chosen(self.space.points, names):
                self._called.append((point, function, Hook(point.name)))

    async def result(self, with_logits: bool) -> np.ndarray | None:
        """Run it and return the logits, if they are wanted."""
        async with looking(self.model, self._cancel):
            work = partial(self._computed, with_logits)
            return await self.model.session.device.survive(work, self._cancel)

    def activations(self) -> dict[str, np.ndarray]:
        """Return what was kept, of all chunks together."""
        whole = len(self.tokens)
        found = {}
        for point in self._kept:
            rows = self._rows[point.name]
            if point.kind in (SCORES, PATTERN):
                empty = -np.inf if point.kind == SCORES else 0.0
                rows = [_widened(each, whole, empty) for each in rows]
            axis = 2 if point.kind in (SCORES, PATTERN) else 1
            found[point.name] = rows[0] if len(rows) == 1 else np.concatenate(rows, axis)
        return found

    # The work ----------------------------------------------------------------------------------

    async def _computed(self, with_logits: bool) -> np.ndarray | None:
        anatomy = self.space.anatomy
        wanted = {v for point in self._kept for v in self._sources(point)}
        wanted |= {v for point, _, _ in self._called for v in self._changed(point)}
        if with_logits:
            wanted.add(anatomy.rows)
        hooked = await load_hooked(self.model, self.space, sorted(wanted))
        await self.model.session.compute_each(
            self.tokens, self._cancel, partial(self._chunk, hooked), in_one=True
        )
        if not with_logits:
            return None
        unembed = await self.space.unembed(self.model)
        logits = await unembed.logits(np.concatenate(self._stream), self._cancel)
        return logits[None]

    def _sources(self, point: HookPoint) -> list[int]:
        """Return the values from which an activation is read."""
        return [point.attention.q] if point.attention is not None else [point.value]

    def _changed(self, point: HookPoint) -> list[int]:
        """Return the values that a function's activation is read from and written to."""
        if point.kind == SCALE:
            return [point.value]
        if point.kind == NORMALISED:
            assert point.norm is not None
            return [point.norm.args[-1]]
        if point.attention is not None:
            return [point.attention.q, point.attention.z]
        return [point.value]

    async def _chunk(self, hooked: HookedGraph, inputs: list[np.ndarray]) -> list[np.ndarray]:
        start = int(inputs[1][0])
        if start == 0:  # it may not be the first time: devices are lost
            self._stream.clear()
            self._rows = {point.name: [] for point in self._kept}
        graph = hooked.graph
        made: dict[str, np.ndarray] = {}  # by functions
        if self._called:
            change = partial(self._change, hooked, start, made)
            arrays = await run_probed(graph, inputs, hooked.kept, change)
        elif hooked.outputs is not None:
            found = await graph.run(inputs, hooked.outputs)
            arrays = dict(zip(hooked.kept, found, strict=True))
        else:
            arrays = await run_probed(graph, inputs, hooked.kept)
        patterns: dict[int, Pattern] = {}
        for point in self._kept:
            if point.name in made:
                self._rows[point.name].append(made[point.name])
                continue
            self._rows[point.name].append(await self._read(hooked, point, start, arrays, patterns))
        if self.space.anatomy.rows in arrays:
            self._stream.append(arrays[self.space.anatomy.rows][0])
        done = start + inputs[0].shape[1]
        self._progress(done, len(self.tokens))
        return list(arrays.values())[:1]

    async def _read(
        self,
        hooked: HookedGraph,
        point: HookPoint,
        start: int,
        arrays: dict[Any, np.ndarray],
        patterns: dict[int, Pattern],
    ) -> np.ndarray:
        """Return an activation of a chunk: [1, S, ...] or [1, H, S, T]."""
        if point.kind == VALUE:
            return _with_batch(arrays[point.value])
        if point.attention is not None:
            q = arrays[point.attention.q]
            if point.value not in patterns:
                patterns[point.value] = await Pattern.read(
                    hooked.graph, point.attention, start, q[0]
                )
            found = patterns[point.value]
            if point.kind == SCORES:
                return found.scores[None]
            return found.pattern(await self._sinks_of(hooked, point))[None]
        x = _with_batch(arrays[point.value])
        scale = np.sqrt(
            np.mean(np.square(x, dtype=np.float64), -1, keepdims=True) + hooked.epsilon(point)
        )
        return np.asarray(scale if point.kind == SCALE else x / scale, np.float32)

    async def _sinks_of(self, hooked: HookedGraph, point: HookPoint) -> np.ndarray | None:
        assert point.attention is not None
        if point.value not in self._sinks:
            self._sinks[point.value] = await read_sinks(hooked.graph, point.attention)
        return self._sinks[point.value]

    # Functions ---------------------------------------------------------------------------------

    async def _change(
        self,
        hooked: HookedGraph,
        start: int,
        made: dict[str, np.ndarray],
        value: int,
        x: np.ndarray,
    ) -> np.ndarray | None:
        """Call the functions of a value in their order; return what becomes of it."""
        changed, self._seen[value] = False, x
        for point, function, hook in self._called:
            if self._changed(point)[-1] != value:
                continue
            hook.start = start
            if point.attention is not None and point.kind != VALUE:
                mixed = await self._change_pattern(hooked, point, function, hook, made)
                new = None if mixed is None else mixed.reshape(x.shape)
            else:
                new = await self._change_value(hooked, point, function, hook, made, x)
            if new is not None:
                changed, x = True, new
        self._seen[value] = x
        return x if changed else None

    async def _change_value(
        self,
        hooked: HookedGraph,
        point: HookPoint,
        function: HookFunction,
        hook: Hook,
        made: dict[str, np.ndarray],
        x: np.ndarray,
    ) -> np.ndarray | None:
        factor: np.ndarray | None = None
        if point.kind == NORMALISED:
            assert point.norm is not None
            factor = await hooked.norm_weight(point.norm)
            nothing = factor == 0
            given = np.where(nothing, 0, x / np.where(nothing, 1, factor)).astype(np.float32)
        elif point.kind == SCALE:
            rows = np.mean(np.square(x, dtype=np.float64), -1, keepdims=True)
            given = np.sqrt(rows + hooked.epsilon(point)).astype(np.float32)
        else:
            given = x
        activation = np.array(_with_batch(given))
        new = await _called(function, activation, hook)
        if new is None:
            return None
        if point.kind == SCALE:
            raise RequestError(f"{point.name} can be read, not changed", "fwd_hooks")
        made[point.name] = new = new.reshape(activation.shape)
        return np.asarray(new if factor is None else new * factor, np.float32).reshape(x.shape)

    async def _change_pattern(
        self,
        hooked: HookedGraph,
        point: HookPoint,
        function: HookFunction,
        hook: Hook,
        made: dict[str, np.ndarray],
    ) -> np.ndarray | None:
        attention = point.attention
        assert attention is not None
        q = self._seen[attention.q]
        pattern = await Pattern.read(hooked.graph, attention, hook.start, q[0])
        scores_name = point.name.replace("hook_pattern", "hook_attn_scores")
        if scores_name in made:  # changed by a function before
            pattern.scores = made[scores_name][0]
        sinks = await self._sinks_of(hooked, point)
        if point.kind == SCORES:
            new = await _called(function, pattern.scores[None].copy(), hook)
            if new is None:
                return None
            made[point.name] = new
            pattern.scores = new[0]
            weights = pattern.pattern(sinks)
            made[point.name.replace("hook_attn_scores", "hook_pattern")] = weights[None]
        else:
            weights = made[point.name][0] if point.name in made else pattern.pattern(sinks)
            new = await _called(function, weights[None].copy(), hook)
            if new is None:
                return None
            made[point.name] = new
            weights = new[0]
        return await pattern.mixed(hooked.graph, weights)


async def _called(function: HookFunction, given: np.ndarray, hook: Hook) -> np.ndarray | None:
    """Return what a hook function makes of an activation, checked."""
    shape = given.shape
    new = function(given, hook)
    if inspect.isawaitable(new):
        new = await _result_of(new)
    if new is None:
        return None
    array = np.asarray(new, np.float32)
    if array.shape not in (shape, shape[1:]):
        raise RequestError(
            f"the function for {hook.name} returned {list(array.shape)}; it must return "
            f"{list(shape)}, or None to leave the activation as it is",
            "fwd_hooks",
        )
    return array.reshape(shape)


async def _result_of(coming: Awaitable[Any]) -> Any:
    return await coming


def _with_batch(array: np.ndarray) -> np.ndarray:
    return array if array.ndim > 2 else array[None]


def _widened(rows: np.ndarray, width: int, empty: float) -> np.ndarray:
    """Return [1, H, S, T] with as many keys as the whole text has."""
    missing = width - rows.shape[-1]
    return np.pad(rows, ((0, 0), (0, 0), (0, 0), (0, missing)), constant_values=empty)
