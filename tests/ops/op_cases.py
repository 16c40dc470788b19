"""Cases of single ops as rows: an op, its arguments, and torch's word for the same thing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from py_runtime.base.dtypes import BOOL, F32, I8, I32, I64, U8, DType
from py_runtime.program.writer import ProgramWriter, Ref
from tests.golden import Case, Tolerance

DTYPE_OF: dict[torch.dtype, DType] = {
    torch.float32: F32,
    torch.float64: F32,  # goldens are computed in float64
    torch.int32: I32,
    torch.int64: I64,
    torch.bool: BOOL,
    torch.int8: I8,
    torch.uint8: U8,
}
FLOATS = Tolerance(1e-4, 2e-6)
RELATIVE = Tolerance(float("inf"), 1e-5)  # for results of any size
Input: TypeAlias = torch.Tensor | int  # an int is a SymInt


@dataclass(frozen=True)
class Row:
    op: str
    args: Callable[..., list[Any]]  # of the inputs; without the output
    golden: Callable[..., Any]  # of the inputs in float64; one tensor or several


def case_of(
    name: str, rows: Sequence[Row], calls: Sequence[Sequence[Input]], tolerance: Tolerance
) -> Case:
    """Make one graph with an output per row; what differs between the calls is dynamic."""
    writer = ProgramWriter()
    refs = [
        _input(writer, f"x{place}", given) for place, given in enumerate(zip(*calls, strict=True))
    ]
    wanted = [[_golden(row, inputs) for row in rows] for inputs in calls]
    for place, row in enumerate(rows):
        results = [call[place] for call in wanted]
        outs = [_output(writer, tensors) for tensors in zip(*results, strict=True)]
        is_list = not isinstance(row.golden(*calls[0]), torch.Tensor)
        writer.op(row.op, *row.args(*refs), outs if is_list else outs[0])
        writer.output(*outs)
    case = Case(name, writer, tolerance)
    for inputs, results in zip(calls, wanted, strict=True):
        case.call(list(inputs), [tensor for tensors in results for tensor in tensors])
    return case


def _golden(row: Row, inputs: Sequence[Input]) -> list[torch.Tensor]:
    exact = [
        x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs
    ]
    result = row.golden(*exact)
    return [result] if isinstance(result, torch.Tensor) else list(result)


def _input(writer: ProgramWriter, name: str, given: Sequence[Input]) -> Ref:
    if isinstance(given[0], int):
        return writer.symint_input(name)
    tensors = [x for x in given if isinstance(x, torch.Tensor)]
    dims = _most(tensors)
    dynamic = [axis for axis, size in enumerate(dims) if {x.shape[axis] for x in tensors} != {size}]
    return writer.input(name, dims, DTYPE_OF[tensors[0].dtype], dynamic)


def _output(writer: ProgramWriter, tensors: Sequence[torch.Tensor]) -> Ref:
    return writer.tensor(_most(tensors), DTYPE_OF[tensors[0].dtype])


def _most(tensors: Sequence[torch.Tensor]) -> tuple[int, ...]:
    return tuple(max(sizes) for sizes in zip(*(x.shape for x in tensors), strict=True))
