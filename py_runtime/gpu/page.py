"""The device interface in the page, over `web/bridge.js`.

Objects are integers here: the bridge keeps the GPU objects, so no proxy can leak. Creation passes
JSON once per batch; the token loop passes addresses of integer tables in the wasm heap.
"""

import asyncio
import json
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from py_runtime.bridge.calls import JsException, address_of, answer_of, bridge, fault
from py_runtime.gpu.interface import OPTIONAL_FEATURES, Device
from py_runtime.gpu.objects import (
    PLAN_COLUMNS,
    AdapterInfo,
    BindGroup,
    BindGroupSpec,
    Buffer,
    BufferSpec,
    Copy,
    FoundAdapter,
    Pipeline,
    PipelineSpec,
    Plan,
    PlanStep,
    Read,
    Write,
    whole_words,
)

NO_PLAN = 0
MATRIX_UNITS = {"componentType": "f16", "resultComponentType": "f32", "M": 16, "N": 16, "K": 16}
NO_ROWS = np.zeros(0, np.uint32)


async def find_adapter() -> FoundAdapter:
    """Look at the adapter without opening it."""
    found = json.loads(await answer_of(bridge.findAdapter(json.dumps(OPTIONAL_FEATURES))))
    return FoundAdapter(_adapter_info(found["adapter"]), frozenset(found["features"]))


async def request_device() -> "PageDevice":
    """Open the adapter with its own limits and the optional features it has."""
    opened = json.loads(await answer_of(bridge.openDevice(json.dumps(OPTIONAL_FEATURES))))
    return PageDevice(
        adapter=_adapter_info(opened["adapter"]),
        features=frozenset(opened["features"]),
        limits={_snake(key): value for key, value in opened["limits"].items()},
    )


def _adapter_info(given: dict[str, Any]) -> AdapterInfo:
    info = {_snake(key): value for key, value in given.items()}
    return AdapterInfo(
        vendor=info["vendor"],
        architecture=info["architecture"],
        device=info["device"],
        description=info["description"],
        is_fallback=info.get("is_fallback_adapter", False),
        subgroup_min_size=info.get("subgroup_min_size", 0),
        subgroup_max_size=info.get("subgroup_max_size", 0),
        has_matrix_units=MATRIX_UNITS in info.get("subgroup_matrix_configs", []),
    )


class PagePlan(Plan):
    """A plan whose steps are arrays of numbers, which the bridge replays without asking Python."""

    def __init__(self, label: str, steps: Sequence[PlanStep]) -> None:
        super().__init__(label, steps)
        pairs = [
            (step.source, step.destination)
            if isinstance(step, Copy)
            else (step.pipeline, step.bind_group)
            for step in steps
        ]
        handles = [[pair[side].handle for pair in pairs] for side in (0, 1)]
        try:
            self.handle = int(bridge.createPlan(label, json.dumps(handles)))
        except JsException as error:
            raise fault(error) from None


class PageDevice(Device):
    """A device over web/bridge.js: handles are numbers that the bridge maps to objects."""

    async def _create_buffers(self, specs: Sequence[BufferSpec]) -> list[Buffer]:
        rows = [{"label": s.label, "size": s.size, "usage": int(s.usage)} for s in specs]
        handles = await _create(bridge.createBuffers, rows)
        return [
            Buffer(spec.label, handle, spec.size, spec.usage)
            for spec, handle in zip(specs, handles, strict=True)
        ]

    async def _create_compute_pipelines(self, specs: Sequence[PipelineSpec]) -> list[Pipeline]:
        rows = [
            {
                "label": spec.label,
                "source": spec.source,
                "entryPoint": spec.entry_point,
                "constants": dict(spec.constants),
            }
            for spec in specs
        ]
        sources = {spec.label: spec.source for spec in specs}
        handles = await _create(bridge.createPipelines, rows, sources)
        return [Pipeline(s.label, handle) for s, handle in zip(specs, handles, strict=True)]

    async def _create_bind_groups(self, specs: Sequence[BindGroupSpec]) -> list[BindGroup]:
        rows = [
            {
                "label": spec.label,
                "pipeline": spec.pipeline.handle,
                "bindings": [
                    [b.buffer.handle, b.offset, b.size or b.buffer.size - b.offset]
                    for b in spec.bindings
                ],
            }
            for spec in specs
        ]
        handles = await _create(bridge.createBindGroups, rows)
        return [BindGroup(s.label, handle) for s, handle in zip(specs, handles, strict=True)]

    def create_plan(self, label: str, steps: Sequence[PlanStep]) -> Plan:
        return PagePlan(label, steps)

    def _submit(
        self, plan: Plan | None, counts: np.ndarray | None, writes: Sequence[Write]
    ) -> None:
        rows, keep_alive = _write_rows(writes)
        try:
            bridge.submit(_plan_handle(plan), _counts_at(counts), address_of(rows), len(writes))
        except JsException as error:
            raise fault(error) from None
        del keep_alive  # the uploads lie in it until the call above has copied them

    def _submit_to_read(
        self,
        plan: Plan | None,
        counts: np.ndarray | None,
        writes: Sequence[Write],
        reads: Sequence[Read],
        repeat: int,
    ) -> "asyncio.Future[list[np.ndarray]]":
        rows, keep_alive = _write_rows(writes)
        results = [np.empty(read.nbytes, np.uint8) for read in reads]
        read_rows = np.array(
            [
                (read.buffer.handle, read.offset, address_of(result), read.nbytes)
                for read, result in zip(reads, results, strict=True)
            ],
            np.uint32,
        )
        started = time.perf_counter()
        promise = bridge.submitAndRead(
            _plan_handle(plan),
            _counts_at(counts),
            address_of(rows),
            len(writes),
            address_of(read_rows),
            len(reads),
            repeat,
        )
        self.counters.submitting_s += time.perf_counter() - started
        del keep_alive  # the bridge has copied the uploads
        # A bare future instead of a task around the promise: every turn of the page's loop costs.
        future = asyncio.get_running_loop().create_future()

        # The bridge writes to the results later: `arrived` keeps them alive until then, also if the
        # caller was cancelled.
        def arrived(nothing: None) -> None:
            if not future.done():
                future.set_result(results)

        def failed(error: JsException) -> None:
            if not future.done():
                future.set_exception(fault(error))

        promise.then(arrived, failed)
        return future

    async def _submit_timed(
        self, plan: Plan, counts: np.ndarray, timed: int, ticks: Buffer
    ) -> None:
        handle, address = _plan_handle(plan), address_of(counts)
        await answer_of(bridge.submitTimed(handle, address, timed, ticks.handle))

    async def finish_writes(self) -> None:
        await answer_of(bridge.finishWrites())

    def _destroy_buffers(self, buffers: Sequence[Buffer]) -> None:
        bridge.release(json.dumps([buffer.handle for buffer in buffers]))

    def release(self, objects: Sequence[BindGroup | Plan]) -> None:
        handles = [_plan_handle(o) if isinstance(o, Plan) else o.handle for o in objects]
        bridge.release(json.dumps(handles))

    def destroy(self) -> None:
        bridge.destroyDevice()


async def _create(
    call: Callable[[str], Any], rows: list[Any], sources: dict[str, str] | None = None
) -> list[int]:
    answer = await answer_of(call(json.dumps(rows)), bridge.release, sources)
    return list(json.loads(answer))


def _plan_handle(plan: Plan | None) -> int:
    return plan.handle if isinstance(plan, PagePlan) else NO_PLAN


def _counts_at(counts: np.ndarray | None) -> int:
    return 0 if counts is None else address_of(counts)


def _write_rows(writes: Sequence[Write]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the table that the bridge reads, and the arrays that must outlive the call."""
    if not writes:
        return NO_ROWS, []
    arrays = [whole_words(write.data) for write in writes]
    rows = [
        (write.buffer.handle, write.offset, address_of(array), array.nbytes)
        for write, array in zip(writes, arrays, strict=True)
    ]
    return np.array(rows, np.uint32), arrays


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


assert PLAN_COLUMNS == 3, "web/bridge.js reads three integers per step"
