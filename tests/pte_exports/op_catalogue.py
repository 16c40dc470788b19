"""ExecuTorch's op-test catalogue, exported with its own generator.

python -m tests.pte_exports.op_catalogue writes tests/pte_ops/stock_cases.npz.xz: the small files of
every suite, and of every argument form, for the tests that run without ExecuTorch.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from executorch.backends.vulkan.quantizer.vulkan_quantizer import (
    VulkanQuantizer,
    get_symmetric_quantization_config,
)
from executorch.backends.webgpu.test.op_tests.generate_op_tests import (
    generate_case,
    op_test_registry,
)
from executorch.backends.webgpu.test.op_tests.test_suite import Case, WebGPUTestSuite
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from tests.pte_exports.argument_forms import FORMS, export_form
from tests.pte_exports.exporter import quiet
from tests.pte_ops.stock_case import STORED, StockCase, write_cases

KEPT_BYTES = 4000  # of a case in the stored file; each suite has one in any case
DTYPES = {"bool": "i1", "int8": "i1", "int32": "<i4", "int64": "<i8", "float32": "<f4"}


def eight_bit_linear(columns: int, rows: int, lines: int) -> torch.nn.Module:
    """Make a linear as the exporter does for weights with a scale for each row, in 8 bits."""
    linear = torch.nn.Linear(columns, rows, bias=False).eval()
    example = (torch.randn(lines, columns),)
    config = get_symmetric_quantization_config(is_dynamic=False, weight_bits=8)
    module = torch.export.export(linear, example).module()
    prepared = prepare_pt2e(module, VulkanQuantizer().set_global(config))
    prepared(*example)
    return convert_pt2e(prepared)


# The catalogue, and an op that it has no suite for.
SUITES: dict[str, WebGPUTestSuite] = {
    **op_test_registry,
    "weight_int8pack_mm": WebGPUTestSuite(
        module_factory=eight_bit_linear,
        cases=[
            Case({"columns": k, "rows": n, "lines": m}, ((m, k),), f"k{k}_n{n}_m{m}")
            for m, k, n in ((4, 32, 16), (1, 20, 6))
        ],
        golden_dtype="float32",
    ),
}


def export_suite(suite: str) -> list[StockCase]:
    """Every case but those that upstream too leaves out for their size."""
    with quiet(), TemporaryDirectory() as folder:
        return [
            read_case(Path(folder), generate_case(suite, SUITES[suite], case, folder))
            for case in SUITES[suite].cases
            if not case.heavy
        ]


def read_case(folder: Path, entries: list[dict[str, Any]]) -> StockCase:
    """`entries`: what the generator says of each output."""
    first = entries[0]
    assert [entry["golden"]["output_index"] for entry in entries] == list(range(len(entries)))
    return StockCase(
        suite=first["op"],
        name=Path(first["pte"]).stem.removeprefix(f"{first['op']}__"),
        pte=np.fromfile(folder / first["pte"], np.uint8),
        calls=[
            [
                [read_array(folder, entry) for entry in first["inputs"]],
                [read_array(folder, entry["golden"]) for entry in entries],
            ]
        ],
        atol=first["atol"],
        rtol=first["rtol"],
    )


def read_array(folder: Path, entry: dict[str, Any]) -> np.ndarray:
    array = np.fromfile(folder / entry["path"], DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return array.astype(bool) if entry["dtype"] == "bool" else array


def small_cases() -> Iterator[StockCase]:
    for suite in SUITES:
        cases = sorted(export_suite(suite), key=lambda case: case.nbytes)
        kept = [case for case in cases if case.nbytes <= KEPT_BYTES] or cases[:1]
        print(suite, json.dumps([case.name for case in kept]), file=sys.stderr)
        yield from kept
    with quiet():
        for name in FORMS:
            yield export_form(name)


if __name__ == "__main__":
    write_cases(STORED, small_cases())
