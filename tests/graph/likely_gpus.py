"""GPUs that people are likely to have, and the kernels that each gets, for docs/gpus.md.

What a row says is public: Apple's feature set tables, the vendors' reports on Vulkan, and the
tiers that Chromium rounds limits down to. `python -m tests.graph.likely_gpus` writes the table.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from py_runtime.folder import process_notes
from py_runtime.gpu import Device
from py_runtime.gpu.kernel_target import FLOAT_KERNELS, HAS_HALVES, KernelTarget
from py_runtime.graph import tuning
from py_runtime.graph.layer_timing import LayerShape, LayerTimes
from py_runtime.program import Program
from tests.halves import having_halves
from tests.runners import NativeRunner, wait
from tools.files import ROOT

PAGE = ROOT / "docs" / "gpus.md"
BETWEEN = re.compile(r"(?<=<!-- likely-gpus -->\n).*?(?=<!-- /likely-gpus -->)", re.DOTALL)
SUBGROUPS = "subgroups"  # the feature
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
GUARANTEED = 128 * MIB  # of a binding, on every device
MOST = 4 * GIB - 4


@dataclass(frozen=True)
class LikelyGpu:
    """A GPU as a browser describes it."""

    name: str
    lanes: tuple[int, int] | None  # the sizes of subgroups; None: the browser has none
    has_halves: bool
    has_byte_products: bool  # an instruction: dot4I8Packed itself is everywhere
    binding_bytes: int = MOST
    workgroup_bytes: int = 32 * KIB
    invocations: int = 1024
    storage_buffers: int = 10

    @property
    def limits(self) -> dict[str, int]:
        return {
            "max_storage_buffer_binding_size": self.binding_bytes,
            "max_compute_workgroup_storage_size": self.workgroup_bytes,
            "max_compute_invocations_per_workgroup": self.invocations,
            "max_storage_buffers_per_shader_stage": self.storage_buffers,
        }


LIKELY_GPUS = (
    LikelyGpu("Apple M1 to M4", (32, 32), has_halves=True, has_byte_products=False),
    LikelyGpu("Apple M1 to M4, Safari before 26", None, has_halves=True, has_byte_products=False),
    LikelyGpu("Intel Xe (Iris Xe)", (8, 32), has_halves=True, has_byte_products=True),
    LikelyGpu("Intel Arc, second generation", (16, 32), has_halves=True, has_byte_products=True),
    LikelyGpu("AMD RDNA", (32, 64), has_halves=True, has_byte_products=False),
    LikelyGpu("AMD RDNA 2 to 4", (32, 64), has_halves=True, has_byte_products=True),
    LikelyGpu("NVIDIA, Pascal", (32, 32), has_halves=False, has_byte_products=True),
    LikelyGpu("NVIDIA, Turing and later", (32, 32), has_halves=True, has_byte_products=True),
    LikelyGpu("Adreno 6xx", (64, 128), False, False, GUARANTEED),
    LikelyGpu("Adreno 7xx and 8xx", (64, 128), True, True, GUARANTEED),
    LikelyGpu("Mali, Bifrost", (8, 8), True, False, GUARANTEED, invocations=256),
    LikelyGpu("Mali, Valhall and later", (16, 16), True, True, GUARANTEED, invocations=256),
    LikelyGpu("the least that WebGPU allows", None, False, False, GUARANTEED, 16 * KIB, 256, 8),
)


@contextmanager
def posing_as(gpu: LikelyGpu, device: Device, lanes: int | None = None) -> Iterator[Device]:
    """Let a device have the features and limits of a GPU, and times as that would have.

    With `lanes`, subgroups are as large as what really computes has them.
    """
    adapter, features, limits = device.adapter, device.features, device.limits
    least, most = (lanes, lanes) if lanes else gpu.lanes or (0, 0)
    with ExitStack() as stack:
        device.adapter = replace(
            adapter,
            description=gpu.name,
            is_fallback=False,
            subgroup_min_size=least,
            subgroup_max_size=most,
        )
        device.features = features - {SUBGROUPS, HAS_HALVES} | ({SUBGROUPS} if gpu.lanes else set())
        device.limits = {
            **limits,
            **{name: min(limits[name], to) for name, to in gpu.limits.items()},
        }
        if gpu.has_halves:
            stack.enter_context(having_halves(device))
        stack.enter_context(patch.object(tuning, "time_products", _time_products))
        stack.enter_context(patch.object(tuning, "time_layers", _timing_layers(gpu)))
        process_notes._in_memory.clear()
        try:
            yield device
        finally:
            process_notes._in_memory.clear()
            device.adapter, device.limits = adapter, limits
            stack.close()
            device.features = features


async def _time_products(device: Device, targets: Sequence[KernelTarget]) -> list[float]:
    return [1.0 if target.wide else 2.0 for target in targets]


def _timing_layers(gpu: LikelyGpu) -> Any:
    async def time_layers(
        device: Device, targets: Mapping[str, KernelTarget], shape: LayerShape
    ) -> dict[str, LayerTimes]:
        usual = LayerTimes(1e-4, 1e-2)
        floats = LayerTimes(1.2e-4, 1.5e-2) if gpu.has_byte_products else LayerTimes(7e-5, 3e-3)
        return {name: floats if name == FLOAT_KERNELS else usual for name in targets}

    return time_layers


def kernels_of(gpu: LikelyGpu, device: Device, program: Program) -> KernelTarget:
    """Return the kernels that a GPU gets for a program."""
    with posing_as(gpu, device):
        return wait(tuning.choose_kernels(device, process_notes, None, program)).target


def table(device: Device, program: Program) -> str:
    """Return the table, in Markdown."""
    rows = [_row(gpu, kernels_of(gpu, device, program)) for gpu in LIKELY_GPUS]
    head = (
        "GPU",
        "subgroups of",
        "`shader-f16`",
        "byte products",
        "a binding, at most",
        "workgroup memory, invocations",
        "work together by",
        "one token, many",
        "KV caches",
    )
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, ("---",) * len(head), *rows)]
    return "\n".join(lines) + "\n"


def _row(gpu: LikelyGpu, target: KernelTarget) -> tuple[str, ...]:
    lanes = "–" if gpu.lanes is None else " to ".join(map(str, dict.fromkeys(gpu.lanes)))
    return (
        gpu.name,
        lanes,
        "yes" if gpu.has_halves else "no",
        "an instruction" if gpu.has_byte_products else "imitated",
        "128 MiB" if gpu.binding_bytes == GUARANTEED else "4 GiB",
        f"{gpu.workgroup_bytes // KIB} KiB, {gpu.invocations}",
        {"subgroups": "subgroups", "memory": "workgroup memory"}[target.lanes_by],
        f"{target.one_token}, {target.many_tokens}",
        target.kv,
    )


def main() -> None:
    from tests.graph.test_likely_gpus import small_program

    text = PAGE.read_text()
    PAGE.write_text(BETWEEN.sub(table(NativeRunner().device, small_program()), text))


if __name__ == "__main__":
    main()
