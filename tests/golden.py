"""Cases as data: a program, calls on one reused graph, torch's answers; one driver for all."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from py_runtime.gpu.kernel_target import PORTABLE_KERNELS
from py_runtime.program.json_format import dump_program
from py_runtime.program.writer import ProgramWriter
from tests.runners import Runner


@dataclass(frozen=True)
class Tolerance:
    """The two gates of every output: largest difference, and relative RMS against float64."""

    absolute: float
    relative_rms: float = 1e-4
    of_each: float = 0.0  # of each number's size, beside what is allowed to all


# One per op class (S30). Absolute gates are weak on small outputs, hence the relative one.
ELEMENTWISE = Tolerance(1e-3)
RMS_NORM = Tolerance(1e-3)
MATMUL = Tolerance(1e-3)
QUANTISED = Tolerance(5e-3)
ATTENTION = Tolerance(2e-3)
ROPE = Tolerance(1e-3)
EXACT = Tolerance(0.0, 0.0)
TWO_PLANES = 1e-4  # relative RMS: columns of x have 15 bits, a block with one scale


@dataclass
class Call:
    inputs: list[Any]
    expected: list[np.ndarray]  # by output index, never by shape (S29)


@dataclass(eq=False)
class Case:
    name: str
    writer: ProgramWriter
    tolerance: Tolerance
    calls: list[Call] = field(default_factory=list)

    def call(self, inputs: Sequence[Any], expected: Sequence[torch.Tensor]) -> None:
        """Add a call; expected values are torch's, computed in float64 where they are floats."""
        arrays = [x.numpy() if isinstance(x, torch.Tensor) else x for x in inputs]
        self.calls.append(Call(arrays, [tensor.numpy() for tensor in expected]))


def check(
    case: Case,
    runner: Runner,
    kernels: str = PORTABLE_KERNELS,
    kv: str = "f32",
    limits: dict[str, int] | None = None,
    enough_tiles: int | None = None,
) -> None:
    """Run every call on one graph and compare each output with torch."""
    assert case.calls, f"case {case.name} makes no calls"
    results = runner.run(
        "tests.in_runtime",
        "run_graph",
        program=dump_program(case.writer.program()),
        constants=case.writer.constants,
        calls=[call.inputs for call in case.calls],
        kernels=kernels,
        kv=kv,
        limits=limits,
        enough_tiles=enough_tiles,
    )
    for number, (call, outputs) in enumerate(zip(case.calls, results, strict=True)):
        assert len(outputs) == len(call.expected), f"call {number}: {len(outputs)} outputs"
        for index, (got, wanted) in enumerate(zip(outputs, call.expected, strict=True)):
            compare(f"{case.name}, call {number}, output {index}", got, wanted, case.tolerance)


def compare(where: str, got: np.ndarray, wanted: np.ndarray, tolerance: Tolerance) -> None:
    assert got.shape == wanted.shape, f"{where}: shape {got.shape}, torch has {wanted.shape}"
    host_dtype = np.float32 if wanted.dtype.kind == "f" else wanted.dtype
    assert got.dtype == host_dtype, f"{where}: dtype {got.dtype}, torch has {wanted.dtype}"
    got64, wanted64 = got.astype(np.float64), wanted.astype(np.float64)
    same_special = (np.isnan(got64) == np.isnan(wanted64)).all()
    assert same_special, f"{where}: NaN in other places than torch"
    finite = np.isfinite(wanted64)
    assert (got64[~finite & ~np.isnan(wanted64)] == wanted64[~finite & ~np.isnan(wanted64)]).all()
    difference = np.abs(got64[finite] - wanted64[finite])
    if not difference.size:
        return
    worst = (difference - tolerance.of_each * np.abs(wanted64[finite])).max()
    assert worst <= tolerance.absolute, f"{where}: off by {worst:.3e}, at most {tolerance.absolute}"
    scale = float(np.sqrt((wanted64[finite] ** 2).mean()))
    relative = float(np.sqrt((difference**2).mean())) / max(scale, 1e-30)
    assert relative <= tolerance.relative_rms, (
        f"{where}: relative RMS {relative:.3e}, at most {tolerance.relative_rms}"
    )
