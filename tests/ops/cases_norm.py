"""rms_norm, layer_norm and group_norm at several widths and live row counts."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from py_runtime.base.dtypes import F32
from py_runtime.program.writer import ProgramWriter
from tests.golden import RMS_NORM, Case
from tests.ops.op_cases import Row, case_of

EPS = 1e-5


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    x = x.double()
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * weight.double()


def layer_norm(shape: tuple[int, ...], weighted: bool, biased: bool) -> Case:
    """Make a case over all of `shape`; the means and the deviations are outputs too."""
    generator = torch.Generator().manual_seed(len(shape))
    weight, bias = (torch.randn(shape, generator=generator) for _ in range(2))

    def args(x: Any, weight: Any, bias: Any) -> list[Any]:
        return [x, list(shape), weight if weighted else None, bias if biased else None, EPS]

    # Far from zero a mean of squares, or a mean that is not mended, would lose the deviations.
    calls = [
        [300 + torch.randn(2, rows, *shape, generator=generator), weight, bias]
        for rows in (32, 7, 1, 32)
    ]
    row = Row(
        "aten.native_layer_norm.default",
        args,
        lambda *given: torch.native_layer_norm(*args(*given)),
    )
    name = f"layer_norm {list(shape)}{' weight' * weighted}{' bias' * biased}"
    return case_of(name, [row], calls, RMS_NORM)


def group_norm(channels: int, groups: int, weighted: bool, biased: bool) -> Case:
    generator = torch.Generator().manual_seed(groups)
    weight, bias = (torch.randn(channels, generator=generator) for _ in range(2))

    def args(x: Any, weight: Any, bias: Any, dims: Sequence[int] = (3, 5, 7)) -> list[Any]:
        batch, height, width = dims  # an exporter writes the largest; the op goes by x itself
        counts = [batch, channels, height * width, groups]
        return [x, weight if weighted else None, bias if biased else None, *counts, EPS]

    def golden(x: torch.Tensor, weight: Any, bias: Any) -> tuple[torch.Tensor, ...]:
        return torch.native_group_norm(*args(x, weight, bias, (len(x), *x.shape[2:])))

    calls = [
        [torch.randn(batch, channels, 5, width, generator=generator), weight, bias]
        for batch, width in ((3, 7), (1, 2), (2, 7), (3, 7))
    ]
    name = f"group_norm {groups} of {channels}{' weight' * weighted}{' bias' * biased}"
    row = Row("aten.native_group_norm.default", args, golden)
    return case_of(name, [row], calls, RMS_NORM)


def cases() -> Iterator[Case]:
    yield layer_norm((33,), weighted=True, biased=True)
    yield layer_norm((576,), weighted=True, biased=False)
    yield layer_norm((3, 4), weighted=False, biased=True)
    yield layer_norm((64,), weighted=False, biased=False)
    yield group_norm(6, 3, weighted=True, biased=True)
    yield group_norm(4, 1, weighted=False, biased=True)
    yield group_norm(4, 4, weighted=True, biased=False)
    for width, weighted in ((4, True), (33, True), (576, True), (36, False), (35, False)):
        generator = torch.Generator().manual_seed(width)
        weight = torch.randn(width, generator=generator) if weighted else torch.ones(width)
        writer = ProgramWriter()
        x = writer.input("x", (1, 32, width), F32, dynamic=(1,))
        out = writer.tensor((1, 32, width), F32)
        own = writer.constant("w", weight.numpy()) if weighted else None
        writer.op("et_vk.rms_norm.default", x, own, EPS, out)
        writer.output(out)
        case = Case(f"rms_norm width {width}{' weight' * weighted}", writer, RMS_NORM)
        for rows in (32, 7, 1, 32):
            data = torch.randn(1, rows, width, generator=generator)
            case.call([data], [rms_norm(data, weight)])
        yield case
