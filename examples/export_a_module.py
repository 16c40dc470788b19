"""A PyTorch module, exported and run on the GPU: python -m examples.export_a_module."""

import asyncio

import torch
from torch import nn
from torch.export import Dim

from export.module import export_module
from py_runtime.app.software_gpu import use_software_if_alone
from py_runtime.gpu import request_device
from py_runtime.graph import Graph


async def main() -> None:
    """Two linears with a silu between, at three lengths, compared with torch."""
    use_software_if_alone()
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 4)).eval()
    length = Dim("length", min=1, max=64)
    writer = export_module(module, (torch.randn(1, 64, 16),), ({1: length},))
    graph = await Graph.load(await request_device(), writer.program(), writer.constants)
    for rows in (64, 1, 5):
        x = torch.randn(1, rows, 16)
        (out,) = await graph.run([x.numpy()])
        difference = (module(x) - torch.from_numpy(out)).abs().max().item()
        print(out.shape, "as torch" if difference < 1e-4 else f"off by {difference}")
    graph.unload()


if __name__ == "__main__":
    asyncio.run(main())
