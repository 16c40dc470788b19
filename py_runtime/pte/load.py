"""The loader of .pte files onto a device."""

from collections.abc import Sequence
from pathlib import Path

from py_runtime.base.progress import Meter
from py_runtime.gpu import Device
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.graph import Graph
from py_runtime.graph.device_choice import choose_device
from py_runtime.pte.module import PteModule
from py_runtime.pte.reader import open_pte
from py_runtime.weights.byte_source import ByteSource
from py_runtime.weights.open_source import open_source
from py_runtime.weights.ranges import RangeConstants

Where = str | Path | ByteSource


async def load(
    where: Where,
    device: Device | None = None,
    data: Sequence[Where] = (),
    methods: Sequence[str] | None = None,
    meter: Meter | None = None,
    target: KernelTarget | None = None,
) -> PteModule:
    """Load the file's methods (all when None) onto the device, or raise and leave nothing there.

    `data`: the .ptd files it was exported with. Weights stream from where they lie. `target`
    chooses the variants of kernels, as in Graph.load.
    """
    program = await open_pte(_source(where), [_source(file) for file in data])
    wanted = [program.method(name) for name in (program.methods if methods is None else methods)]
    device = device or await choose_device()
    graphs: dict[str, tuple[Graph, ...]] = {}
    module = PteModule(program, graphs)
    try:
        for method in wanted:
            graphs[method.name] = ()
            for step in method.delegates:
                constants = RangeConstants(step.ranges)
                graph = await Graph.load(device, step.program, constants, meter, target)
                graphs[method.name] += (graph,)
    except BaseException:
        module.unload()
        raise
    return module


def _source(where: Where) -> ByteSource:
    return open_source(where) if isinstance(where, str | Path) else where
