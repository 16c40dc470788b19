"""The time that towers take for an image, with random weights: python -m bench.towers.

They have the shapes of Gemma 3 4B's (896 × 896) and SmolVLM 500M's (a tile of 512 × 512). What is
measured are the calls of a tower, from patches in memory to rows in memory.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Mapping

import numpy as np

from py_runtime.base.dtypes import F16, F32
from py_runtime.base.progress import Meter
from py_runtime.cpu.native import request_cpu
from py_runtime.decoder.tensors import WeightKind
from py_runtime.folder import process_notes
from py_runtime.gguf.stored_weights import kind_of
from py_runtime.gguf.tensor_types import BY_NAME
from py_runtime.gpu import Device, request_device
from py_runtime.graph import Graph
from py_runtime.graph.tuning import KernelChoice, choose_kernels
from py_runtime.program import Program
from py_runtime.vision.gemma3 import Gemma3
from py_runtime.vision.siglip import SiglipSight, SiglipSizes
from py_runtime.vision.smolvlm import SmolVlm

KINDS = ("F32", "F16", "Q8_0")  # in which mmproj files are published
WARM_UP = 2  # runs that are not counted: the first ones compile and settle
GEMMA3_4B = Gemma3(
    sizes=SiglipSizes(patch=14, width=1152, hidden=4304, layers=27, heads=16, positions=4096),
    out=2560,
    side=896,
    factor=4,
)
SMOLVLM_500M = SmolVlm(
    sizes=SiglipSizes(patch=16, width=768, hidden=3072, layers=12, heads=12, positions=1024),
    out=960,
    side=512,
    factor=4,
    edge=512,
    is_split=False,
)
TOWERS: Mapping[str, tuple[SiglipSight, int]] = {
    "Gemma 3 4B": (GEMMA3_4B, GEMMA3_4B.side),
    "SmolVLM 500M": (SMOLVLM_500M, SMOLVLM_500M.side),
}


def kinds_of(sight: SiglipSight, stored: str) -> dict[str, WeightKind]:
    """Return the kind of each matrix; those whose columns are no whole blocks stay floats."""
    found = {}
    for name, dims in sight.shapes().items():
        if sight.is_matrix(name):
            is_whole = dims[-1] % BY_NAME[stored].values == 0
            kind = kind_of(BY_NAME[stored if is_whole else "F16"], dims[-1])
            assert kind is not None, "kernels read all of KINDS"
            found[name] = kind
    return found


def random_constants(program: Program) -> dict[str, np.ndarray]:
    """Return small numbers for all weights, so that no sum overflows."""
    rng = np.random.default_rng(0)
    found: dict[str, np.ndarray] = {}
    for _, value, name in program.constants():
        if value.dtype in (F16, F32):
            numbers = rng.standard_normal(value.dims, np.float32) * np.float32(0.02)
            found[name] = numbers.astype(value.dtype.gpu)
        else:
            found[name] = rng.integers(-100, 100, value.dims).astype(value.dtype.gpu)
    return found


async def measure(device: Device, kernels: KernelChoice, name: str, stored: str, runs: int) -> None:
    """Print the median of so many images."""
    sight, side = TOWERS[name]
    program = sight.write(kinds_of(sight, stored), name)
    constants = random_constants(program)
    graph = await Graph.load(device, program, constants, Meter(), target=kernels.target)
    image = np.random.default_rng(1).integers(0, 256, (side, side, 3), dtype=np.uint8)
    (call,) = sight.calls_of(image, is_coarse=False)
    times = []
    for _ in range(WARM_UP + runs):
        began = time.perf_counter()
        await graph.run(call)
        times.append(1000 * (time.perf_counter() - began))
    counted = times[WARM_UP:]
    graph.unload()
    print(
        f"{name}, {stored}, {side} × {side}: {statistics.median(counted):.1f} ms "
        f"({min(counted):.1f} to {max(counted):.1f}, of {runs})",
        flush=True,
    )


async def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--kind", choices=KINDS, default="F16", help="of the weights")
    parser.add_argument("--only", choices=TOWERS, help="one of the towers")
    parser.add_argument("--runs", type=int, default=10)
    given = parser.parse_args()
    device = await (request_cpu() if given.device == "cpu" else request_device())
    kernels = (await choose_kernels(device, process_notes)).exactly()
    print(f"kernels {kernels.target.kernels} ({kernels.why})")
    for name in [given.only] if given.only else TOWERS:
        await measure(device, kernels, name, given.kind, given.runs)


if __name__ == "__main__":
    asyncio.run(main())
