"""Parameters as a GPU reads them; test_params_on_the_gpu.py runs this through runners."""

import numpy as np

from py_runtime.gpu import (
    UNIFORM_USAGE,
    BindGroupSpec,
    Binding,
    BufferSpec,
    Device,
    Dispatch,
    PipelineSpec,
    Read,
    Write,
)


async def read_words(device: Device, source: str, packed: np.ndarray, words: int) -> np.ndarray:
    """Run a kernel that writes words of its parameters to `out`; return the words."""
    buffers = await device.create_buffers(
        [BufferSpec("words", 4 * words), BufferSpec("params", packed.nbytes, UNIFORM_USAGE)]
    )
    (pipeline,) = await device.create_compute_pipelines([PipelineSpec("parameters", source)])
    bindings = tuple(Binding(buffer) for buffer in buffers)
    (group,) = await device.create_bind_groups([BindGroupSpec("words", pipeline, bindings)])
    plan = device.create_plan("words", [Dispatch("words", pipeline, group)])
    writes = [Write(buffers[1], packed)]
    counts = np.ones((1, 3), np.uint32)
    (read,) = await device.submit_and_read(plan, counts, writes, [Read(buffers[0], 4 * words)])
    device.release([group, plan])
    device.destroy_buffers(buffers)
    return read.view(np.uint32)
