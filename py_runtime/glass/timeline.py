"""The timeline of a call: every dispatch with its time, its bytes, and the torch it came from.

line = await timeline(model, tokens=1, context=128)
line.by("op")                      # where the time goes
line.compare(await timeline(model, tokens=1, context=1000))
line.save("trace.json")            # opens in Perfetto and chrome://tracing
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from py_runtime.base.errors import RequestError
from py_runtime.base.html import as_html
from py_runtime.base.shapes import numel
from py_runtime.base.sizes import in_words
from py_runtime.glass.calls import GraphCall, Progress, ignore, running
from py_runtime.glass.places import places_of
from py_runtime.glass.traffic import Traffic
from py_runtime.graph import Graph
from py_runtime.graph.builder import LaunchSpec
from py_runtime.graph.step_times import BY_SEGMENTS, StepTimes, time_steps
from py_runtime.model import Model

LARGE = 1 << 18  # bytes: what reads less says little of the memory
COPY = "copy"  # the shader of a copy
GROUPS: dict[str, Callable[["Dispatch"], str]] = {
    "op": lambda each: each.op,
    "section": lambda each: each.section,
    "shader": lambda each: each.shader,
}


@dataclass(frozen=True)
class Dispatch:
    """One launch of a kernel, or one copy, as it ran."""

    step: int  # of the plan
    op_index: int  # of the running program
    op: str
    shader: str
    section: str  # "embedding", "layer 3", …, "head"
    module: str
    sources: tuple[str, ...]  # lines of torch: all that it stands for
    grid: tuple[int, int, int]
    workgroups: int
    workgroup_size: int  # invocations of one
    bytes_read: int
    bytes_written: int
    begin: float  # microseconds after the first dispatch
    microseconds: float
    bandwidth_share: float | None  # of the fastest read seen; None of what is too short to tell
    call: int = 0  # of a prefill in chunks

    @property
    def gb_per_s(self) -> float:
        moved = self.bytes_read + self.bytes_written
        return moved / self.microseconds / 1000 if self.microseconds else 0.0


@dataclass(frozen=True)
class Group:
    """Dispatches that have something in common."""

    name: str
    count: int
    microseconds: float
    share: float  # of the whole
    bytes_read: int
    bytes_written: int


@dataclass(frozen=True)
class Change:
    """A dispatch in two runs; None where a run has none."""

    name: str
    before: float | None  # microseconds
    after: float | None

    @property
    def difference(self) -> float:
        return (self.after or 0.0) - (self.before or 0.0)


@dataclass(frozen=True)
class Timeline:
    """The dispatches of a call in their order."""

    name: str  # of the program
    tokens: int
    context: int  # tokens before them
    device: str
    timing: str  # "device": its own clock; "segments": ours, shared out by bytes
    gb_per_s: float  # the fastest read seen, or as given: what shares are of
    dispatches: tuple[Dispatch, ...]

    @property
    def microseconds(self) -> float:
        return sum(each.microseconds for each in self.dispatches)

    @property
    def is_estimated(self) -> bool:
        """Return whether times are of segments, shared out over their dispatches."""
        return self.timing == BY_SEGMENTS

    def by(self, what: str = "op") -> list[Group]:
        """Return the dispatches by "op", "section" or "shader", the most time first."""
        if what not in GROUPS:
            raise RequestError(f"a timeline is grouped by {', '.join(GROUPS)}, not by '{what}'")
        groups: dict[str, list[Dispatch]] = {}
        for each in self.dispatches:
            groups.setdefault(GROUPS[what](each), []).append(each)
        total = self.microseconds or 1.0
        found = [
            Group(
                name,
                len(items),
                took := sum(each.microseconds for each in items),
                took / total,
                sum(each.bytes_read for each in items),
                sum(each.bytes_written for each in items),
            )
            for name, items in groups.items()
        ]
        return sorted(found, key=lambda group: -group.microseconds)

    def compare(self, other: "Timeline") -> list[Change]:
        """Return each dispatch of this run and another one, what changed most first."""
        before, after = _named(self), _named(other)
        names = dict.fromkeys([*before, *after])
        found = [Change(name, before.get(name), after.get(name)) for name in names]
        return sorted(found, key=lambda change: -abs(change.difference))

    def trace(self) -> dict[str, Any]:
        """Return the trace in Chrome's format: dispatches on one line, sections on another."""
        events: list[dict[str, Any]] = [
            {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": self.name}},
            {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "dispatches"}},
            {"ph": "M", "pid": 1, "tid": 2, "name": "thread_name", "args": {"name": "sections"}},
        ]
        for name, begin, took in _runs(self.dispatches):
            events.append(_slice(name, "section", 2, begin, took, {}))
        for each in self.dispatches:
            facts = asdict(each)
            named = {key: facts[key] for key in facts if key not in ("begin", "microseconds")}
            name = each.op.removeprefix("inpage.").removesuffix(".default")
            events.append(_slice(name, "dispatch", 1, each.begin, each.microseconds, named))
        said = {"timing": self.timing, "device": self.device, "gb_per_s": self.gb_per_s}
        return {
            "traceEvents": events,
            "displayTimeUnit": "ns",
            "otherData": {**said, "tokens": self.tokens, "context": self.context},
        }

    def save(self, path: str | Path) -> None:
        """Write the trace as a file that Perfetto opens."""
        Path(path).write_text(json.dumps(self.trace()), encoding="utf-8")

    def _repr_html_(self) -> str:
        clock = "times of segments" if self.is_estimated else "the device's clock"
        facts = [
            f"{self.microseconds:,.0f} µs",
            f"{len(self.dispatches)} dispatches",
            f"{self.tokens} tokens after {self.context}",
            f"{self.gb_per_s:.1f} GB/s at best",
            clock,
        ]
        rows = [
            (
                group.name,
                group.count,
                f"{group.microseconds:,.1f}",
                f"{group.share:.1%}",
                in_words(group.bytes_read),
            )
            for group in self.by("op")
        ]
        head = ("op", "dispatches", "µs", "share", "reads")
        return as_html(f"Timeline of {self.name}", facts, head, *rows)


async def timeline(
    target: Model | Graph,
    tokens: int | Sequence[int] = 1,
    context: int = 0,
    *,
    inputs: Sequence[Any] | None = None,
    repeats: int = 3,
    gb_per_s: float | None = None,
    progress: Progress = ignore,
) -> Timeline:
    """Measure every dispatch of a call for `tokens` (their number, or the tokens) after `context`.

    One token is a step of decoding, more are a prefill. A graph alone is given its `inputs`.
    `gb_per_s` is the device's read bandwidth, where it is not to be the fastest read seen.
    """
    async with running(target, tokens, context, inputs) as (graph, calls):
        outputs = None if isinstance(target, Graph) else [0]
        found: list[Dispatch] = []
        by, done = "", count(1)
        for number, call in enumerate(calls):
            times = await time_steps(
                graph,
                call.inputs,
                outputs,
                repeats,
                lambda: progress(next(done), len(calls) * (repeats + 1)),
            )
            by = times.by
            begin = found[-1].begin + found[-1].microseconds if found else 0.0
            found += _dispatches(graph, call, times, number, begin)
        best = gb_per_s or max((each.gb_per_s for each in found if _is_telling(each)), default=0.0)
        return Timeline(
            graph.program.name,
            sum(call.span.tokens for call in calls if call.span),
            context,
            graph.device.adapter.description or graph.device.adapter.device,
            by,
            best,
            tuple(_with_share(each, best) for each in found),
        )


def _dispatches(
    graph: Graph, call: GraphCall, times: StepTimes, number: int, begin: float
) -> list[Dispatch]:
    builder, traffic, places = graph.builder, Traffic(graph, call.span), places_of(graph)
    live = np.flatnonzero(times.counts.any(axis=1)).tolist()
    moved = {step: traffic.of(step) for step in live}
    took = _shared_out(times, moved)
    found = []
    for step in live:
        spec, op_index = builder.steps[step], builder.step_ops[step]
        place, grid = places.after[op_index], times.counts[step].tolist()
        is_launch = isinstance(spec, LaunchSpec)
        found.append(
            Dispatch(
                step,
                op_index,
                graph.program.ops[op_index].name,
                spec.pipeline.label if isinstance(spec, LaunchSpec) else COPY,
                place.section,
                place.module,
                tuple(place.source.splitlines()),
                (grid[0], grid[1], grid[2]) if is_launch else (0, 0, 0),
                numel(grid) if is_launch else 0,
                spec.launch.workgroup if isinstance(spec, LaunchSpec) else 0,
                *moved[step],
                begin,
                took[step],
                None,
                number,
            )
        )
        begin += took[step]
    return found


def _shared_out(times: StepTimes, moved: dict[int, tuple[int, int]]) -> dict[int, float]:
    """Return microseconds by step; those of a segment go to its steps by the bytes they move."""
    if times.by != BY_SEGMENTS:
        return {step: float(times.nanoseconds[step]) / 1000 for step in moved}
    took: dict[int, float] = {}
    for first, end in times.segments:
        inside = [step for step in moved if first <= step < end]
        weights = np.array([sum(moved[step]) + 1 for step in inside], float)
        microseconds = float(times.nanoseconds[first]) / 1000 * weights / weights.sum()
        took.update(zip(inside, microseconds.tolist(), strict=True))
    return took


def _is_telling(each: Dispatch) -> bool:
    return each.bytes_read >= LARGE


def _with_share(each: Dispatch, best: float) -> Dispatch:
    if not best or not each.microseconds or not _is_telling(each):
        return each
    return Dispatch(**{**vars(each), "bandwidth_share": each.gb_per_s / best})


def _named(line: Timeline) -> dict[str, float]:
    """Return the microseconds of each dispatch under a name that two runs share."""
    found: dict[str, float] = {}
    for each in line.dispatches:
        name = f"op {each.op_index} ({each.op}) {each.shader}"
        found[name] = found.get(name, 0.0) + each.microseconds
    return found


def _runs(dispatches: Sequence[Dispatch]) -> list[tuple[str, float, float]]:
    """Return neighbouring dispatches of one section together: name, begin, microseconds."""
    runs: list[tuple[str, float, float]] = []
    last: tuple[str, int] | None = None
    for each in dispatches:
        key = (each.section, each.call)
        if key == last:
            name, begin, took = runs[-1]
            runs[-1] = (name, begin, took + each.microseconds)
        else:
            runs.append((each.section or "graph", each.begin, each.microseconds))
        last = key
    return runs


def _slice(
    name: str, category: str, line: int, begin: float, took: float, facts: dict[str, Any]
) -> dict[str, Any]:
    when = {"ts": begin, "dur": took}
    return {"ph": "X", "pid": 1, "tid": line, "name": name, "cat": category, **when, "args": facts}
