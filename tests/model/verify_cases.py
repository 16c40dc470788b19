"""Probes and verify beside the engine, natively or in the page, on behalf of the tests here."""

from typing import Any

import numpy as np

from py_runtime.app.jsonable import jsonable
from py_runtime.gpu import Device
from py_runtime.graph import Graph
from py_runtime.graph.probes import run_probed
from py_runtime.model import Model
from py_runtime.model.verify import verify
from py_runtime.program import TensorValue
from py_runtime.program.json_format import load_program


async def probe_calls(
    device: Device,
    program: str,
    constants: dict[str, np.ndarray],
    calls: list[list[Any]],
    names: list[str],
) -> list[dict[str, np.ndarray]]:
    """Each call probed and, in a second graph, plain: what was probed, and all outputs."""
    probed = await Graph.load(device, load_program(program), constants)
    plain = await Graph.load(device, load_program(program), constants)
    results = []
    for inputs in calls:
        found = await run_probed(probed, inputs, [*names, *probed.program.outputs])
        row = {str(name): array for name, array in found.items()}
        row["plain"] = (await plain.run(inputs))[0]
        row["probed"] = row.pop(str(probed.program.outputs[0]))
        results.append(row)
    # Both caches hold the same now, and the probed graph goes on as if nothing had been.
    (results[-1]["afterwards"],) = await probed.run(calls[-1])
    probed.unload()
    plain.unload()
    return results


async def verify_while_spoilt(device: Device, where: str, constants: list[str]) -> dict[str, Any]:
    """Report on the sound model, on it with each constant spoilt, and on the mended model."""
    model = await Model.load(device, where)
    steps: list[tuple[str, int, int]] = []
    reports = {"sound": await verify(model, lambda *step: steps.append(step), thorough=True)}
    for name in constants:
        buffer = model.graph.buffer(constant_id(model.graph, name))
        data = await device.read_buffer(buffer, buffer.size)
        device.write_buffer(buffer, np.roll(data.view(np.float32), 1) * 3)
        reports[name] = await verify(model)
        device.write_buffer(buffer, data)
    reports["mended"] = await verify(model)
    model.unload()
    return {"reports": jsonable(reports), "steps": steps}


def constant_id(graph: Graph, name: str) -> int:
    return next(
        value_id
        for value_id, value in enumerate(graph.program.values)
        if isinstance(value, TensorValue) and value.constant == name
    )
