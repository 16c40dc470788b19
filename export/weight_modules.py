"""The tensors of a checkpoint as modules that hold them in their stored form."""

import torch
from torch import Tensor, nn

from export import torch_ops
from export.support import DTYPE_OF
from py_runtime.decoder.tensors import WeightKind, bias_rows, weight_parts
from py_runtime.program.weight_kinds import FLOAT, Q4GSW

TORCH_DTYPES = {dtype: torch_dtype for torch_dtype, dtype in DTYPE_OF.items()}


class Weight(nn.Module):
    """A matrix [rows, columns] in its stored form, to multiply with or to look rows up in."""

    weight: Tensor
    scales: Tensor
    bias: Tensor | None

    def __init__(self, kind: WeightKind, rows: int, columns: int, bias: bool = False) -> None:
        super().__init__()
        self.kind, self.rows, self.columns = kind, rows, columns
        parts = weight_parts(kind, rows, columns)
        self.part_names = tuple(parts)
        for name, (dims, dtype) in parts.items():
            self.register_buffer(name, torch.empty(dims, dtype=TORCH_DTYPES[dtype]))
        self.register_buffer("bias", torch.empty(bias_rows(kind, rows)) if bias else None)

    def forward(self, x: Tensor) -> Tensor:  # [..., columns] → [..., rows]
        if self.kind.name == FLOAT:
            return nn.functional.linear(x, self.weight, self.bias)
        if self.kind.name == Q4GSW:
            group_size = self.kind.group_size
            return torch_ops.linear_q4gsw(x, self.weight, self.scales, group_size, self.bias)
        linear = getattr(torch.ops.inpage, f"linear_{self.kind.name}")
        return linear(x, *self._parts(), self.bias)

    def look_up(self, tokens: Tensor) -> Tensor:  # [1, S] → [1, S, columns]
        if self.kind.name == FLOAT:
            return nn.functional.embedding(tokens, self.weight)
        embedding = getattr(torch.ops.inpage, f"embedding_{self.kind.name}")
        return embedding(*self._parts(), tokens)

    def _parts(self) -> list[Tensor]:
        return [getattr(self, name) for name in self.part_names]


class Norm(nn.Module):
    """An RMS norm over the last dim, in float32."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.register_buffer("weight", torch.empty(width))

    def forward(self, x: Tensor) -> Tensor:  # [..., width]
        return torch_ops.rms_norm(x, self.weight, self.eps)


class Vector(nn.Module):
    """A few numbers, under this name."""

    weight: Tensor
    bias: Tensor

    def __init__(self, name: str, length: int) -> None:
        super().__init__()
        self.register_buffer(name, torch.empty(length))


class Taps(nn.Module):
    """The factors of a convolution for a channel's last values."""

    weight: Tensor
    bias: Tensor | None

    def __init__(self, width: int, taps: int, bias: bool = False) -> None:
        super().__init__()
        self.register_buffer("weight", torch.empty(width, taps))
        self.register_buffer("bias", torch.empty(width) if bias else None)
