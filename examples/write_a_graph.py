"""A graph written by hand, run on the GPU at several lengths: python -m examples.write_a_graph."""

import asyncio

import numpy as np

from py_runtime.app.software_gpu import use_software_if_alone
from py_runtime.base.dtypes import F32
from py_runtime.gpu import request_device
from py_runtime.graph import Graph
from py_runtime.program.writer import ProgramWriter

WIDTH = 8


def normed_rows() -> ProgramWriter:
    """Rows, each divided by the root of its mean square; there may be 1 to 100 of them."""
    writer = ProgramWriter("normed rows")
    x = writer.input("x", (100, WIDTH), F32, dynamic=(0,))
    weight = writer.constant("weight", np.ones(WIDTH, np.float32))
    out = writer.tensor((100, WIDTH), F32)
    writer.op("et_vk.rms_norm.default", x, weight, 1e-6, out)
    writer.output(out)
    return writer


async def main() -> None:
    """Run the graph at three lengths: what is built once serves all of them."""
    use_software_if_alone()
    writer = normed_rows()
    graph = await Graph.load(await request_device(), writer.program(), writer.constants)
    for rows in (100, 1, 7):
        (out,) = await graph.run([np.full((rows, WIDTH), 3, np.float32)])
        print(out.shape, out.mean())
    graph.unload()


if __name__ == "__main__":
    asyncio.run(main())
