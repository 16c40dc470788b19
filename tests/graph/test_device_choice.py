"""The device that a load gets: the one that was asked for, or else the faster one."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from py_runtime.base.defaults import DEVICE_VARIABLE
from py_runtime.base.errors import GpuUnavailableError, RequestError
from py_runtime.folder import process_notes
from py_runtime.gpu import CPU, GPU, AdapterInfo, FoundAdapter
from py_runtime.gpu.kernel_target import CPU_KERNELS, MIN_WIDE_SUBGROUP, PORTABLE_KERNELS
from py_runtime.graph import device_choice, tuning
from py_runtime.graph.device_choice import choose_device, wanted_kind
from tests.runners import wait

SMALL, LARGE = 8, MIN_WIDE_SUBGROUP


class FakeDevice:
    def __init__(self, kind: str, threads: int | None) -> None:
        self.kind = kind
        self.threads = threads
        self.is_destroyed = False
        self.counters = type("Counters", (), {"buffers_alive": 0})()

    def destroy(self) -> None:
        self.is_destroyed = True


class Machine:
    """A machine as the choice sees it: its adapter, if any, and the seconds of a product."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.adapter: FoundAdapter | None = None
        self.has_cpu = True
        self.refuses = False  # its adapter, to open a device
        self.seconds: dict[str, float | Exception] = {GPU: 1.0, CPU: 1.0}
        self.looked = self.measured = 0
        self.opened: list[FakeDevice] = []
        monkeypatch.setattr(device_choice, "find_adapter", self.find_adapter)
        monkeypatch.setattr(device_choice, "device_in_use", self.device_in_use)
        monkeypatch.setattr(device_choice, "time_products", self.time_products)
        monkeypatch.setattr(device_choice, "candidates", lambda device: {"only": device.kind})
        monkeypatch.delenv(DEVICE_VARIABLE, raising=False)

    def with_adapter(self, lanes: int, is_fallback: bool = False) -> None:
        features = frozenset({"subgroups"} if lanes else ())
        info = AdapterInfo("vendor", "", "", "", is_fallback, lanes, lanes)
        self.adapter = FoundAdapter(info, features)

    async def find_adapter(self) -> FoundAdapter:
        self.looked += 1
        if self.adapter is None:
            raise GpuUnavailableError("no adapter here")
        return self.adapter

    async def device_in_use(self, kind: str, threads: int | None = None) -> FakeDevice:
        if kind == GPU and (self.adapter is None or self.refuses):
            raise GpuUnavailableError("no adapter here")
        if kind == CPU and not self.has_cpu:
            raise GpuUnavailableError("no SIMD here")
        self.opened.append(FakeDevice(kind, threads))
        return self.opened[-1]

    async def time_products(self, device: FakeDevice, targets: list[Any]) -> list[float]:
        self.measured += 1
        seconds = self.seconds[device.kind]
        if isinstance(seconds, Exception):
            raise seconds
        return [seconds for _ in targets]

    def chosen(self, wanted: Any = None, threads: Any = None) -> str:
        return wait(choose_device(wanted, threads, process_notes)).kind


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    process_notes._in_memory.clear()
    yield Machine(monkeypatch)
    process_notes._in_memory.clear()


@pytest.mark.parametrize("lanes", [0, LARGE])
def test_a_graphics_card_is_taken_without_a_measurement(machine: Machine, lanes: int) -> None:
    machine.with_adapter(lanes)
    assert machine.chosen() == GPU
    assert machine.measured == 0
    assert len(machine.opened) == 1, "and the CPU is not opened"


@pytest.mark.parametrize("lanes", [0, SMALL, LARGE])
def test_a_software_adapter_loses_without_a_measurement(machine: Machine, lanes: int) -> None:
    machine.with_adapter(lanes, is_fallback=True)
    assert machine.chosen() == CPU
    assert machine.measured == 0
    assert len(machine.opened) == 1, "and is not opened"


def test_without_an_adapter_the_cpu_is_taken(machine: Machine) -> None:
    assert machine.chosen() == CPU


@pytest.mark.parametrize("lanes", [SMALL, LARGE])
def test_an_adapter_that_opens_no_device_is_as_good_as_none(machine: Machine, lanes: int) -> None:
    machine.with_adapter(lanes)
    machine.refuses = True
    assert machine.chosen() == CPU


def test_without_a_cpu_the_software_adapter_is_taken(machine: Machine) -> None:
    machine.has_cpu = False
    machine.with_adapter(SMALL, is_fallback=True)
    assert machine.chosen() == GPU


def test_where_there_is_nothing_people_hear_what_the_gpu_lacks(machine: Machine) -> None:
    machine.has_cpu = False
    with pytest.raises(GpuUnavailableError, match="no adapter here"):
        machine.chosen()


@pytest.mark.parametrize(
    ("on_gpu", "on_cpu", "wanted"),
    [
        *((1.0, 1.0, GPU), (1.0, 0.9, GPU), (1.0, 0.5, CPU), (0.1, 1.0, GPU)),
        *((RuntimeError("the driver"), 1.0, GPU), (1.0, RuntimeError("a trap"), GPU)),
    ],
)
def test_a_doubtful_adapter_is_measured_once(
    machine: Machine, on_gpu: float | Exception, on_cpu: float | Exception, wanted: str
) -> None:
    machine.with_adapter(SMALL)
    machine.seconds = {GPU: on_gpu, CPU: on_cpu}
    assert machine.chosen() == wanted
    assert machine.opened[0].is_destroyed == (wanted == CPU)
    measured = machine.measured
    machine.seconds = {GPU: on_cpu, CPU: on_gpu}
    assert machine.chosen() == wanted
    assert machine.measured == measured, "it is remembered"
    wait(choose_device())
    assert machine.measured > measured, "without notes it is not"


def test_the_note_of_the_kernels_stays(machine: Machine) -> None:
    machine.with_adapter(SMALL)
    assert machine.adapter

    async def with_kernels() -> dict[str, Any]:
        assert machine.adapter
        note = await tuning.read_note(machine.adapter, process_notes)
        await process_notes.write_note(tuning.NOTE, {**note, "kernels": "memory"})
        await choose_device(notes=process_notes)
        return await tuning.read_note(machine.adapter, process_notes)

    note = wait(with_kernels())
    assert (note["kernels"], note["device"]) == ("memory", GPU)


def test_a_measurement_does_not_take_for_ever(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(device_choice, "LIMIT_SECONDS", 0.01)
    monkeypatch.setattr(device_choice, "time_products", never)
    machine.with_adapter(SMALL)
    assert machine.chosen() == GPU


def test_what_is_asked_for_is_taken(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.with_adapter(LARGE)
    assert machine.chosen(CPU) == CPU
    assert machine.chosen(None, 3) == CPU, "threads are the CPU's"
    assert machine.opened[-1].threads == 3
    monkeypatch.setenv(DEVICE_VARIABLE, CPU)
    assert machine.chosen() == CPU
    assert machine.chosen(GPU) == GPU
    assert machine.looked == 0
    machine.adapter = None
    with pytest.raises(GpuUnavailableError):
        machine.chosen(GPU)
    monkeypatch.setenv(DEVICE_VARIABLE, "CPU")
    assert machine.chosen(CPU) == CPU
    with pytest.raises(RequestError, match="INPAGE_DEVICE is 'CPU' here; it must be gpu or cpu"):
        machine.chosen()


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        *((("tpu",), "device"), ((3,), "device")),
        *(((GPU, 2), "threads"), ((CPU, 0), "threads"), ((CPU, 1000), "threads")),
    ],
)
def test_what_cannot_be_is_refused_by_name(machine: Machine, asked: Any, param: str) -> None:
    with pytest.raises(RequestError) as caught:
        machine.chosen(*asked)
    assert caught.value.param == param


def test_kernels_ask_for_their_device() -> None:
    assert wanted_kind(None, None) is None
    assert wanted_kind(CPU, None) == CPU
    assert wanted_kind(None, PORTABLE_KERNELS) == GPU
    assert wanted_kind(None, CPU_KERNELS) == wanted_kind(CPU, CPU_KERNELS) == CPU
    assert wanted_kind(None, None, 2) == wanted_kind(CPU, CPU_KERNELS, 2) == CPU
    with pytest.raises(RequestError, match="threads are for"):
        wanted_kind(None, PORTABLE_KERNELS, 2)
    for device, kernels in ((CPU, PORTABLE_KERNELS), (GPU, CPU_KERNELS)):
        with pytest.raises(RequestError, match=f"'{kernels}' do not run on the device '{device}'"):
            wanted_kind(device, kernels)
    for asked, param in ((("tpu", None), "device"), ((None, "quick"), "kernels")):
        with pytest.raises(RequestError) as caught:
            wanted_kind(*asked)
        assert caught.value.param == param
