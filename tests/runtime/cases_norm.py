"""rms_norm at several widths and live row counts."""

from collections.abc import Iterator

import torch

from py_runtime.dtypes import F32
from py_runtime.program_writer import ProgramWriter
from tests.golden import RMS_NORM, Case

EPS = 1e-5


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    x = x.double()
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * weight.double()


def cases() -> Iterator[Case]:
    for width in (4, 33, 576):
        generator = torch.Generator().manual_seed(width)
        weight = torch.randn(width, generator=generator)
        writer = ProgramWriter()
        x = writer.input("x", (1, 32, width), F32, dynamic=(1,))
        out = writer.tensor((1, 32, width), F32)
        writer.op("et_vk.rms_norm.default", x, writer.constant("w", weight.numpy()), EPS, out)
        writer.output(out)
        case = Case(f"rms_norm width {width}", writer, RMS_NORM)
        for rows in (32, 7, 1, 32):
            data = torch.randn(1, rows, width, generator=generator)
            case.call([data], [rms_norm(data, weight)])
        yield case
