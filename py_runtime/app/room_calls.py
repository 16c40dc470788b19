"""The engine room's views for the call `glass`: timeline, graph, memory, kernel lab."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.base.short_texts import short
from py_runtime.generation.options import unknown_field
from py_runtime.glass.graph_view import graph_view, op_view, values_of
from py_runtime.glass.kernel_lab import Trial, kernel_lab
from py_runtime.glass.memory_view import memory_view
from py_runtime.glass.timeline import Timeline, timeline
from py_runtime.model import Model

Fields = dict[str, Any]
Progress = Callable[[int, int], None]
Kind = TypeVar("Kind", int, str, bool)

KEPT = 8  # timelines of a model, whose traces can be asked for
COLUMNS = (
    *("step", "op_index", "grid", "workgroups", "workgroup_size", "bytes_read", "bytes_written"),
    *("begin", "bandwidth_share", "call", "module"),
)


@dataclass
class Kept:
    """Results that a page may come back to."""

    timelines: dict[int, Timeline] = field(default_factory=dict)
    trials: dict[int, Trial] = field(default_factory=dict)
    number: int = 0


_kept: WeakKeyDictionary[Model, Kept] = WeakKeyDictionary()


def _keep(model: Model, among: str, thing: Any) -> int:
    kept = _kept.setdefault(model, Kept())
    kept.number += 1
    things: dict[int, Any] = getattr(kept, among)
    things[kept.number] = thing
    while len(things) > KEPT:
        del things[next(iter(things))]
    return kept.number


def _find(model: Model, among: str, number: int) -> Any:
    things: dict[int, Any] = getattr(_kept.get(model, Kept()), among)
    if number not in things:
        raise RequestError("that is gone; measure it again")
    return things[number]


def _take(fields: Fields, name: str, kind: type[Kind], default: Kind | None = None) -> Kind:
    value = fields.pop(name, default)
    if type(value) is not kind:
        raise RequestError(f"{name} must be a {kind.__name__}, got {short(value)}", name)
    return value


def _optional(fields: Fields, name: str, kind: type[Kind]) -> Kind | None:
    return _take(fields, name, kind) if name in fields else None


def _end(fields: Fields) -> None:
    """Refuse what no view knows: no field is ignored."""
    if fields:
        raise unknown_field(next(iter(fields)))


def _call(fields: Fields) -> tuple[int, int]:
    return _take(fields, "tokens", int, 1), _take(fields, "context", int, 0)


# Timeline ----------------------------------------------------------------------------------------


async def _timeline(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    """Give the dispatches of a call, column by column; names come once, with indices to them."""
    (tokens, context), repeats = _call(fields), _take(fields, "repeats", int, 3)
    _end(fields)
    if not 1 <= repeats <= 100:
        raise RequestError("repeats must be from 1 to 100", "repeats")

    def told(done: int, total: int) -> None:
        cancel.check()
        progress(done, total)

    line = await timeline(model, tokens, context, repeats=repeats, progress=told)
    facts = ("name", "tokens", "context", "device", "timing", "gb_per_s", "microseconds")
    found: dict[str, Any] = {fact: getattr(line, fact) for fact in facts}
    for plural, name in (("ops", "op"), ("shaders", "shader"), ("sections", "section")):
        found[plural], found[name] = _indexed(getattr(each, name) for each in line.dispatches)
    texts = ("\n".join(each.sources) for each in line.dispatches)
    found["sources"], found["source"] = _indexed(texts)
    found["took"] = [each.microseconds for each in line.dispatches]
    for column in COLUMNS:
        found[column] = [getattr(each, column) for each in line.dispatches]
    return {"run": _keep(model, "timelines", line), **found}


def _indexed(values: Iterable[str]) -> tuple[list[str], list[int]]:
    """Return each value once, and the index of each."""
    places: dict[str, int] = {}
    indices = [places.setdefault(value, len(places)) for value in values]
    return list(places), indices


async def _trace(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    """Give a timeline as the JSON that Perfetto opens."""
    line: Timeline = _find(model, "timelines", _take(fields, "run", int))
    _end(fields)
    return line.trace()


# Graph and memory --------------------------------------------------------------------------------


async def _graph(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    section, fused = _optional(fields, "section", str), _take(fields, "fused", bool, True)
    tokens, context = _call(fields)
    _end(fields)
    view = await graph_view(model, section, fused=fused, tokens=tokens, context=context)
    return asdict(view)


async def _op(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    index, fused = _take(fields, "index", int), _take(fields, "fused", bool, True)
    tokens, context = _call(fields)
    _end(fields)
    return asdict(await op_view(model, index, fused=fused, tokens=tokens, context=context))


async def _op_values(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    index, (tokens, context) = _take(fields, "index", int), _call(fields)
    _end(fields)
    found = await values_of(model, index, tokens=tokens, context=context)
    return [asdict(each) for each in found]


async def _memory(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    _end(fields)
    view = memory_view(model)
    return {**asdict(view), "totals": view.totals, "nbytes": view.nbytes}


# Kernel lab --------------------------------------------------------------------------------------


async def _kernels(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    """Give all kernels of the graph, without their sources."""
    _end(fields)
    lab = kernel_lab(model)
    ops = model.graph.program.ops
    shaders = [
        {
            "name": each.name,
            "launches": len(each.steps),
            "ops": list(dict.fromkeys(ops[op].name for op in each.ops)),
            "steps": list(each.steps),
            "is_changed": each.is_changed,
        }
        for each in lab.shaders()
    ]
    return {"can_edit": lab.can_edit, "shaders": shaders}


async def _kernel(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    name = _take(fields, "name", str)
    _end(fields)
    lab = kernel_lab(model)
    return {"source": lab.shader(name).source, "own": lab.own_source(name)}


async def _try_kernel(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    name, source = _take(fields, "name", str), _take(fields, "source", str)
    op = _optional(fields, "op", int)
    _end(fields)

    def told(done: int, total: int) -> None:
        cancel.check()
        progress(done, total)

    trial = await kernel_lab(model).try_source(name, source, op=op, progress=told)
    goldens = trial.goldens
    return {
        "trial": _keep(model, "trials", trial),
        "ok": trial.ok,
        "errors": [asdict(each) for each in trial.errors],
        "cases": [asdict(each) for each in trial.cases],
        "times": [asdict(each) for each in trial.times],
        "goldens": goldens and {"ok": goldens.ok, "messages": goldens.messages},
    }


async def _keep_kernel(
    model: Model, fields: Fields, progress: Progress, cancel: CancelToken
) -> Any:
    trial: Trial = _find(model, "trials", _take(fields, "trial", int))
    _end(fields)
    await kernel_lab(model).keep(trial)
    return {}


async def _revert_kernel(
    model: Model, fields: Fields, progress: Progress, cancel: CancelToken
) -> Any:
    """Bring back one of the engine's own kernels, or all."""
    name = _optional(fields, "name", str)
    _end(fields)
    await kernel_lab(model).revert(name)
    return {}


async def _kept_kernels(
    model: Model, fields: Fields, progress: Progress, cancel: CancelToken
) -> Any:
    """Give the kept kernels as WGSL: text by file name."""
    _end(fields)
    return kernel_lab(model).export()


ROOM_VIEWS = {
    "timeline": _timeline,
    "trace": _trace,
    "graph": _graph,
    "op": _op,
    "op_values": _op_values,
    "memory": _memory,
    "kernels": _kernels,
    "kernel": _kernel,
    "try_kernel": _try_kernel,
    "keep_kernel": _keep_kernel,
    "revert_kernel": _revert_kernel,
    "kept_kernels": _kept_kernels,
}
