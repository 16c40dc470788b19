"""A profile of one run of a graph: GPU time by dispatch, by kernel, by kind of op."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from py_runtime.base.html import as_html
from py_runtime.graph.builder import Builder, LaunchSpec


@dataclass(frozen=True)
class Timing:
    """The time of one dispatch, or of a group of dispatches."""

    label: str
    kind: str  # the op's name
    count: int  # dispatches in a run
    microseconds: float  # that they take in a run
    share: float  # of the whole run


@dataclass(frozen=True)
class Profile:
    """One run, measured by the GPU's own clock."""

    microseconds: float  # of a run: the sum of its dispatches, without what lies between them
    kinds: list[Timing]  # by op, the most time first
    kernels: list[Timing]  # by op and shader, likewise
    dispatches: list[Timing]  # in the order they run

    def _repr_html_(self) -> str:
        head = ("op", "dispatches", "µs", "share")
        rows = [
            (each.label, each.count, f"{each.microseconds:.1f}", f"{each.share:.1%}")
            for each in self.kinds
        ]
        facts = [f"{self.microseconds:.1f} µs", f"{len(self.dispatches)} dispatches"]
        return as_html("Profile", facts, head, *rows)


def profile_of(builder: Builder, counts: np.ndarray, nanoseconds: np.ndarray) -> Profile:
    """Build a profile from the counts and nanoseconds of each step of the plan.

    Copies and skipped dispatches are left out.
    """
    total = float(nanoseconds.sum()) / 1000
    dispatches = []
    for step, op, (groups, *_), took in zip(
        builder.steps, builder.step_ops, counts.tolist(), nanoseconds.tolist(), strict=True
    ):
        if isinstance(step, LaunchSpec) and groups:
            share = took / 1000 / total if total else 0.0
            kind = builder.program.ops[op].name
            dispatches.append(Timing(step.launch.label, kind, 1, took / 1000, share))
    return Profile(
        total,
        _summed(dispatches, lambda timing: timing.kind),
        _summed(dispatches, lambda timing: f"{timing.kind} {timing.label.rsplit(' ', 1)[1]}"),
        dispatches,
    )


def _summed(timings: Sequence[Timing], label: Callable[[Timing], str]) -> list[Timing]:
    sums: dict[str, Timing] = {}
    for timing in timings:
        more = replace(timing, label=label(timing))
        known = sums.get(more.label)
        sums[more.label] = more if known is None else _sum(known, more)
    return sorted(sums.values(), key=lambda timing: -timing.microseconds)


def _sum(one: Timing, other: Timing) -> Timing:
    return replace(
        one,
        count=one.count + other.count,
        microseconds=one.microseconds + other.microseconds,
        share=one.share + other.share,
    )
