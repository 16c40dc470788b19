"""Kernels by a measurement: where features leave doubt, once, and never in the way of a load."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from py_runtime.base.errors import GpuDeviceLostError, GpuValidationError, RequestError
from py_runtime.folder import process_notes
from py_runtime.gpu import Device
from py_runtime.gpu.kernel_target import (
    CPU_KERNELS,
    GPU_KERNELS,
    MEMORY_KERNELS,
    MIN_WIDE_SUBGROUP,
    PORTABLE_KERNELS,
    KernelTarget,
)
from py_runtime.graph import tuning
from py_runtime.graph.tuning import (
    ASKED_FOR,
    FEATURES,
    MEASURED,
    REMEMBERED,
    KernelChoice,
    choose_kernels,
)
from tests.graph.tuning_cases import posing
from tests.runners import CpuRunner, NativeRunner, Runner, wait

CASES = "tests.graph.tuning_cases"
SMALL, LARGE = 4, MIN_WIDE_SUBGROUP


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    process_notes._in_memory.clear()
    yield
    process_notes._in_memory.clear()


def test_a_doubtful_adapter_is_measured_once(runner: Runner) -> None:
    """The real kernels of all kinds run; the adapter claims to be a GPU with small subgroups."""
    *seen, left = runner.run(CASES, "choices", name="a GPU", lanes=SMALL, is_fallback=False)
    third = REMEMBERED if runner.name == "page" else MEASURED
    assert seen == [MEASURED, REMEMBERED, third]
    assert left == 0


def test_a_software_adapter_is_not_measured(runner: Runner) -> None:
    *seen, _ = runner.run(CASES, "choices", name="software", lanes=SMALL, is_fallback=True)
    assert seen == [FEATURES, FEATURES, FEATURES]


class Straw:
    """Stands for the measurement: seconds of the wide and of the portable kernel, or a fault."""

    def __init__(self, wide: float | Exception, portable: float | Exception) -> None:
        self._outcomes = {True: wide, False: portable}
        self.calls = 0

    async def time_products(self, device: Any, targets: list[KernelTarget]) -> list[float]:
        self.calls += 1
        seconds = []
        for outcome in (self._outcomes[target.wide] for target in targets):
            if isinstance(outcome, Exception):
                raise outcome
            seconds.append(outcome)
        return seconds


def chosen(native: NativeRunner, lanes: int, is_fallback: bool = False) -> KernelChoice:
    with posing(native.device, "straw", lanes, is_fallback):
        return wait(choose_kernels(native.device, process_notes))


@pytest.mark.parametrize(
    ("lanes", "is_fallback", "wide", "portable", "is_wide"),
    [
        (SMALL, False, 1.0, 2.0, True),  # a small graphics processor
        (SMALL, False, 2.0, 1.0, False),  # software that does not say so
        (LARGE, False, 1.0, 2.0, True),
        (LARGE, False, 2.0, 1.0, True),  # a graphics processor that was idle
        (LARGE, False, 4.0, 1.0, False),
        (LARGE, True, 1.0, 2.0, True),  # software with large subgroups
        (LARGE, True, 4.0, 1.0, False),
        (LARGE, False, 1.1, 1.0, True),  # as good as equal: the features' choice
        (SMALL, False, 1.0, 1.1, False),
        (LARGE, False, 0.0, 0.0, True),  # a clock too coarse to tell
    ],
)
def test_the_clearly_quicker_one_wins(
    lanes: int,
    is_fallback: bool,
    wide: float,
    portable: float,
    is_wide: bool,
    native: NativeRunner,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    straw = Straw(wide, portable)
    monkeypatch.setattr(tuning, "time_products", straw.time_products)
    first = chosen(native, lanes, is_fallback)
    assert (first.why, first.target.wide) == (MEASURED, is_wide)
    again = chosen(native, lanes, is_fallback)
    assert (again.why, again.target) == (REMEMBERED, first.target)
    assert straw.calls == 1
    with posing(native.device, "another", lanes, is_fallback):
        assert wait(choose_kernels(native.device, process_notes)).why == MEASURED


@pytest.mark.parametrize("lanes", [SMALL, LARGE])
def test_a_fault_leaves_the_features_choice(
    lanes: int, native: NativeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    straw = Straw(GpuValidationError("no such luck"), GpuValidationError("no such luck"))
    monkeypatch.setattr(tuning, "time_products", straw.time_products)
    first = chosen(native, lanes)
    assert (first.why, first.target.wide) == (FEATURES, lanes == LARGE)
    assert chosen(native, lanes).why == REMEMBERED, "a slow fault is not met again"


def test_a_lost_device_is_no_verdict(native: NativeRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    straw = Straw(GpuDeviceLostError("gone"), GpuDeviceLostError("gone"))
    monkeypatch.setattr(tuning, "time_products", straw.time_products)
    assert [chosen(native, LARGE).why for _ in range(2)] == [FEATURES, FEATURES]


def test_a_compiler_without_end_is_not_waited_for(
    native: NativeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def for_ever(*arguments: Any) -> list[float]:
        await asyncio.Event().wait()
        return []

    monkeypatch.setattr(tuning, "time_products", for_ever)
    with posing(native.device, "slow", LARGE, is_fallback=False):
        monkeypatch.setattr(tuning, "LIMIT_SECONDS", 0.0)
        choice = wait(choose_kernels(native.device, process_notes))
    assert (choice.why, choice.target.wide) == (FEATURES, True)


@pytest.mark.parametrize(("wide", "portable"), [(1.0, 2.0), (4.0, 1.0)])
def test_without_subgroups_memory_and_portable_kernels_compete(
    wide: float, portable: float, native: NativeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native.device, "features", frozenset())
    monkeypatch.setattr(tuning, "time_products", Straw(wide, portable).time_products)
    choice = chosen(native, lanes=0)
    assert (choice.why, choice.target.lanes) == (MEASURED, 1)
    assert choice.target.kernels == (MEMORY_KERNELS if wide < portable else PORTABLE_KERNELS)


def test_a_software_adapter_without_subgroups_is_not_measured(
    native: NativeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native.device, "features", frozenset())
    choice = chosen(native, lanes=0, is_fallback=True)
    assert (choice.why, choice.target.kernels) == (FEATURES, PORTABLE_KERNELS)


@pytest.mark.parametrize("wanted", GPU_KERNELS)
def test_what_is_asked_for_is_taken(wanted: str, native: NativeRunner) -> None:
    choice = wait(choose_kernels(native.device, process_notes, wanted))
    assert (choice.why, choice.target.kernels, choice.wanted) == (ASKED_FOR, wanted, wanted)


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ("quick", "one of portable, subgroups, memory, floats, halves, matrices, cpu, got 'quick'"),
        ("halves", "this device does not run the kernels 'halves'; it runs portable or"),
        ("cpu", "this device does not run the kernels 'cpu'; it runs portable or memory or floats"),
        ("subgroups", "this device does not run the kernels 'subgroups'; it runs portable or"),
    ],
)
def test_what_cannot_be_had_is_told(
    wanted: str, text: str, native: NativeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native.device, "features", frozenset())
    with pytest.raises(RequestError, match=text):
        wait(choose_kernels(native.device, process_notes, wanted))


@pytest.mark.parametrize("note", [None, 7, {"of": "something else"}, {"wide": True}])
def test_a_note_that_makes_no_sense_is_ignored(
    note: Any, native: NativeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "time_products", Straw(1.0, 2.0).time_products)
    process_notes._in_memory[tuning.NOTE] = note
    assert chosen(native, LARGE).why == MEASURED


@pytest.mark.parametrize("lanes", [SMALL, LARGE])
def test_kernels_that_do_not_compile_lose(
    lanes: int, native: NativeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def only_portable(device: Device, target: KernelTarget) -> AsyncIterator[Timed]:
        if target.wide:
            raise GpuValidationError("no such function")
        yield Timed()

    monkeypatch.setattr(tuning, "loaded", only_portable)
    choice = chosen(native, lanes)
    assert (choice.why, choice.target.kernels) == (MEASURED, PORTABLE_KERNELS)


class Timed:
    """A product that takes a second."""

    async def seconds(self) -> float:
        return 1.0


def test_a_cpu_has_kernels_of_its_own(cpu: CpuRunner) -> None:
    choice = wait(choose_kernels(cpu.device, process_notes))
    assert (choice.why, choice.target.kernels, choice.wanted) == (FEATURES, CPU_KERNELS, None)
    assert wait(choose_kernels(cpu.device, process_notes, CPU_KERNELS)).wanted == CPU_KERNELS
    with pytest.raises(RequestError, match="does not run the kernels 'portable'; it runs cpu"):
        wait(choose_kernels(cpu.device, process_notes, PORTABLE_KERNELS))
