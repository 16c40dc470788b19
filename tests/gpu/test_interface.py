"""Checks and counts of every device, over one that keeps its buffers in memory.

The kernels that a device's features suggest are here, too.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from py_runtime.base.errors import GpuUnavailableError, GpuValidationError
from py_runtime.gpu import interface
from py_runtime.gpu.interface import SUBGROUP_MATRICES, Device
from py_runtime.gpu.kernel_target import KernelTarget, candidates, seems_software
from py_runtime.gpu.objects import (
    AdapterInfo,
    BindGroup,
    Buffer,
    BufferSpec,
    BufferUsage,
    Copy,
    Counters,
    Dispatch,
    Pipeline,
    PipelineSpec,
    Plan,
    Read,
    Write,
    padded_size,
    whole_words,
)
from tests.runners import wait

LIMITS = {
    "max_buffer_size": 1000,
    "max_storage_buffers_per_shader_stage": 9,
    "max_storage_buffer_binding_size": 500,
}


def adapter(fallback: bool = False, subgroup: int = 0) -> AdapterInfo:
    return AdapterInfo("v", "a", "d", "", fallback, subgroup, subgroup)


class MemoryDevice(Device):
    """Writes and reads; plans are only written down."""

    log: list[Any]

    async def _create_buffers(self, specs: Sequence[BufferSpec]) -> list[Buffer]:
        return [Buffer(s.label, bytearray(s.size), s.size, s.usage) for s in specs]

    async def _create_compute_pipelines(self, specs: Sequence[PipelineSpec]) -> list[Pipeline]:
        self.log.append([spec.label for spec in specs])
        return [Pipeline(spec.label, object()) for spec in specs]

    async def _create_bind_groups(self, specs: Any) -> list[BindGroup]:
        raise AssertionError("nothing was asked for")

    def create_plan(self, label: str, steps: Any) -> Plan:
        return Plan(label, steps)

    def _submit(self, plan: Any, counts: Any, writes: Sequence[Write]) -> None:
        for write in writes:
            data = write.data.tobytes()
            write.buffer.handle[write.offset : write.offset + len(data)] = data
        if plan is not None:
            self.log.append(("replayed", counts[:, 0].tolist()))

    def _submit_to_read(self, plan: Any, counts: Any, writes: Any, reads: Any, repeat: int) -> Any:
        self._submit(plan, counts, writes)
        future = asyncio.get_running_loop().create_future()
        future.set_result(
            [
                np.frombuffer(bytes(r.buffer.handle[r.offset : r.offset + r.nbytes]), np.uint8)
                for r in reads
            ]
        )
        return future

    async def _submit_timed(self, plan: Any, counts: Any, timed: int, ticks: Buffer) -> None:
        self.log.append(("timed", timed, counts[:, 0].tolist(), counts[:, 2].tolist()))
        pairs = np.array([[100 * at, 107 * at + 9 * (3 - timed)] for at in range(timed)], np.int64)
        ticks.handle[: pairs.nbytes] = pairs.tobytes()

    def _destroy_buffers(self, buffers: Sequence[Buffer]) -> None:
        self.log.append(("destroyed", [buffer.label for buffer in buffers]))

    def release(self, objects: Any) -> None: ...

    def destroy(self) -> None: ...


def device(features: Sequence[str] = (), **given: Any) -> MemoryDevice:
    made = MemoryDevice(adapter(**given), frozenset(features), LIMITS)
    made.log = []
    return made


def buffer_of(made: Device, size: int = 20) -> Buffer:
    (buffer,) = wait(made.create_buffers([BufferSpec("b", size)]))
    return buffer


@pytest.mark.parametrize(("size", "padded"), [(1, 4), (4, 4), (5, 8), (999, 1000), (1000, 1000)])
def test_a_buffer_has_whole_words(size: int, padded: int) -> None:
    made = device()
    buffer = buffer_of(made, size)
    assert buffer.size == padded_size(size) == padded
    assert (made.counters.buffers_alive, made.counters.buffer_bytes_alive) == (1, padded)
    made.destroy_buffers([buffer])
    assert (made.counters.buffers_alive, made.counters.buffer_bytes_alive) == (0, 0)


@pytest.mark.parametrize(("label", "size"), [("", 4), ("b", 0), ("b", -4), ("b", 1001)])
def test_a_buffer_that_cannot_be(label: str, size: int) -> None:
    with pytest.raises(GpuValidationError):
        wait(device().create_buffers([BufferSpec(label, size)]))


def test_nothing_at_all_is_made() -> None:
    assert wait(device().create_buffers([])) == []
    assert wait(device().create_bind_groups([])) == []


def test_equal_pipelines_are_compiled_once() -> None:
    made = device()
    a, b = PipelineSpec("a", "x"), PipelineSpec("b", "y")
    first, second, third = wait(made.create_compute_pipelines([a, b, a]))
    assert first is third
    assert first is not second
    assert wait(made.create_compute_pipelines([b])) == [second]
    assert made.log == [["a", "b"]]
    assert PipelineSpec("a", "x") == PipelineSpec("a", "x", (), "main")


def test_bytes_go_up_and_come_back() -> None:
    made = device()
    buffer = buffer_of(made)
    made.write_buffer(buffer, np.array([1, 2], np.int32))
    made.write_buffer(buffer, np.array([3], np.int32), 16)
    assert wait(made.read_buffer(buffer, 8)).view(np.int32).tolist() == [1, 2]
    assert wait(made.read_buffer(buffer, 4, 16)).view(np.int32).tolist() == [3]
    counters = made.counters
    assert (counters.writes, counters.bytes_written) == (2, 12)
    assert (counters.reads, counters.bytes_read) == (2, 12)
    assert (counters.submits, counters.dispatches) == (0, 0)


@pytest.mark.parametrize(("offset", "nbytes"), [(-4, 4), (2, 4), (20, 4), (16, 8), (0, 24)])
def test_ranges_lie_within_their_buffer(offset: int, nbytes: int) -> None:
    made = device()
    buffer = buffer_of(made)
    with pytest.raises(GpuValidationError, match="do not fit its 20 bytes"):
        made.write_buffer(buffer, np.zeros(nbytes, np.uint8), offset)
    with pytest.raises(GpuValidationError, match="do not fit its 20 bytes"):
        wait(made.read_buffer(buffer, nbytes, offset))


def test_what_does_not_lie_in_a_row_is_refused() -> None:
    made = device()
    buffer = buffer_of(made)
    with pytest.raises(GpuValidationError, match="C-contiguous"):
        made.write_buffer(buffer, np.zeros((2, 4), np.uint8).T)


def plan_of(made: MemoryDevice) -> Plan:
    buffer = cast(Any, "buffer")
    steps = [Dispatch(f"d{n}", cast(Any, None), cast(Any, None)) for n in range(5)]
    return made.create_plan(
        "p", [*steps[:3], Copy("c", buffer, buffer), *steps[3:], Copy("e", buffer, buffer)]
    )


COUNTS = np.array(
    [[1, 1, 1], [0, 0, 0], [3, 1, 1], [0, 0, 8], [4, 1, 1], [5, 1, 1], [0, 0, 12]], np.uint32
)


def test_a_plan_is_replayed_with_its_counts() -> None:
    made = device()
    plan = plan_of(made)
    made.submit(plan, COUNTS)
    assert (made.counters.submits, made.counters.dispatches) == (1, 4)
    wait(made.submit_and_read(plan, COUNTS, [], [Read(buffer_of(made), 4)], repeat=3))
    assert (made.counters.submits, made.counters.dispatches) == (2, 16)
    wait(made.submit_and_read(plan, COUNTS, [], []))
    assert made.counters.dispatches == 20
    for wrong in (COUNTS[:-1], COUNTS[:, :2], COUNTS.astype(np.int64)):
        with pytest.raises((GpuValidationError, AssertionError)):
            made.submit(plan, wrong)


def test_steps_are_timed_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each dispatch that runs, and copies in their place between them; then the rest."""
    monkeypatch.setattr(interface, "MAX_TIMED", 3)
    made = device(["timestamp-query"])
    made.nanoseconds_per_tick = 2.0
    found = wait(made.time_steps(plan_of(made), COUNTS))
    assert found.tolist() == [0, 0, 14, 0, 28, 36, 0]
    assert made.log == [
        ("timed", 3, [1, 0, 3, 0, 4, 0, 0], [1, 0, 1, 8, 1, 0, 0]),
        ("timed", 1, [0, 0, 0, 0, 0, 5, 0], [0, 0, 0, 0, 0, 1, 0]),
        ("destroyed", ["timestamps of p"]),
        ("replayed", [0] * 7),
    ]
    assert made.counters.buffers_alive == 0
    assert made.counters.dispatches == 4
    with pytest.raises(GpuUnavailableError, match="timestamp"):
        wait(device().time_steps(plan_of(made), COUNTS))


def test_usages_are_webgpu_s() -> None:
    """The numbers are those of https://www.w3.org/TR/webgpu/#buffer-usage."""
    usages = {"MAP_READ": 1, "COPY_SRC": 4, "COPY_DST": 8, "UNIFORM": 64, "STORAGE": 128}
    assert {each.name: each.value for each in BufferUsage} == usages | {"QUERY_RESOLVE": 512}


# Which kernels ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("features", "fallback", "subgroup", "software", "lanes", "kernels"),
    [
        ((), False, 0, False, 1, "memory"),
        ((), False, 32, False, 1, "memory"),
        ((), True, 0, True, 1, "portable"),
        (("subgroups",), False, 32, False, 32, "subgroups"),
        (("subgroups",), False, 16, False, 16, "subgroups"),
        (("subgroups",), False, 15, True, 15, "portable"),
        (("subgroups",), False, 4, True, 4, "portable"),
        (("subgroups",), True, 32, True, 32, "portable"),
        (("subgroups",), False, 0, True, 1, "portable"),
    ],
)
def test_which_kernels_features_speak_for(
    features: Sequence[str],
    fallback: bool,
    subgroup: int,
    software: bool,
    lanes: int,
    kernels: str,
) -> None:
    made = device(features, fallback=fallback, subgroup=subgroup)
    assert seems_software(made.adapter, made.features) == software
    target = KernelTarget.of(made)
    assert (target.wide, target.lanes, target.kernels) == (not software, lanes, kernels)
    assert (target.storage_buffers, target.binding_bytes) == (9, 500)
    assert target.kv == "f32"
    assert target.lanes_by == ("subgroups" if lanes > 1 else "memory")
    found = candidates(made)
    assert next(iter(found)) == kernels
    either = {"subgroups"} if lanes > 1 else set()
    assert set(found) == {"portable", "memory", "floats"} | either
    assert all(name == each.kernels for name, each in found.items())


def test_halves_where_the_device_has_them() -> None:
    assert KernelTarget.of(device(["shader-f16"])).kv == "f16"
    assert candidates(device(["shader-f16"]))["halves"].many_tokens == "f16"
    plain = KernelTarget()
    assert (plain.wide, plain.lanes, plain.storage_buffers, plain.kv) == (False, 1, 8, "f32")
    assert plain.binding_bytes == 128 << 20
    assert plain.kernels == "portable"
    pairs = KernelTarget(wide=True, lanes=2)
    assert (pairs.lanes_by, pairs.kernels) == ("subgroups", "subgroups")


@pytest.mark.parametrize(
    ("missing", "has"),
    [
        ({}, True),
        ({"features": ["subgroups", "shader-f16"]}, False),
        ({"features": [SUBGROUP_MATRICES, "subgroups"]}, False),
        ({"has_matrix_units": False}, False),  # only of bytes, or of 8 × 8
        ({"subgroup_min_size": 16}, False),
        ({"subgroup_max_size": 64}, False),
        ({"memory": 16 << 10}, False),
    ],
)
def test_matrices_where_the_device_has_them(missing: dict[str, Any], has: bool) -> None:
    offered: dict[str, Any] = {
        "features": [SUBGROUP_MATRICES, "subgroups", "shader-f16"],
        "has_matrix_units": True,
        "subgroup_min_size": 32,
        "subgroup_max_size": 32,
        "memory": 32 << 10,
        **missing,
    }
    features, memory = offered.pop("features"), offered.pop("memory")
    made = device(features)
    made.adapter = replace(made.adapter, **offered)
    made.limits = {**LIMITS, "max_compute_workgroup_storage_size": memory}
    found = candidates(made)
    assert ("matrices" in found) == has
    assert KernelTarget.of(made).many_tokens == "bytes", "features alone do not choose them"
    if has:
        target = found["matrices"]
        assert (target.one_token, target.many_tokens, target.lanes) == ("bytes", "matrices", 32)


def test_uploads_are_whole_words() -> None:
    words = np.arange(8, dtype=np.uint8)
    assert whole_words(words) is words
    for count in (5, 6, 7):
        sent = whole_words(words[:count])
        assert sent.tobytes() == bytes(range(count)) + bytes(8 - count)
    assert padded_size(0) == 4


def test_flows_begin_anew_and_what_is_alive_stays_counted() -> None:
    made = device()
    made.write_buffer(buffer_of(made), np.zeros(4, np.uint8))
    made.counters.submitting_s = 1.0
    made.counters.reset()
    assert made.counters == Counters(buffers_alive=1, buffer_bytes_alive=20)
