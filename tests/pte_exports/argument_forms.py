"""Small modules, each for a form of arguments that ExecuTorch's exporter gives to an op.

These are optional ones, numbers of either kind, negative dims, 0-d tensors, integers and bools,
live sizes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.exir import to_edge_transform_and_lower

from tests.pte_ops.stock_case import StockCase

TOLERANCE = 1e-5
Function = Callable[..., Any]
Inputs = tuple[torch.Tensor, ...]

_generator = torch.Generator().manual_seed(7)


def floats(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=_generator)


def integers(*shape: int, least: int = -9) -> torch.Tensor:
    return torch.randint(least, 10, shape, generator=_generator)


def bools(*shape: int) -> torch.Tensor:
    return floats(*shape) > 0


def rows(*lengths: int) -> list[Inputs]:
    """Return one input of [S, 4, 5] for each S; the largest comes first."""
    return [(floats(length, 4, 5),) for length in lengths]


X, Y = floats(3, 4, 5), floats(4, 5)
WHOLE, ROW = integers(3, 4), torch.tensor([1, -2, 3, 4])
LIVE = rows(6, 1, 4, 6)
TABLE = floats(10, 4)
ATTENDED = torch.linspace(-1, 1, 24).reshape(1, 2, 3, 4)

# Each function, and its inputs; or those of several calls, where what differs is a live dim.
FORMS: dict[str, tuple[Function, Inputs | list[Inputs]]] = {
    # Two operands: alpha, numbers, integers, broadcasting, 0-d.
    "add alpha": (lambda a, b: torch.add(a, b, alpha=2), (X, Y)),
    "sub alpha": (lambda a, b: torch.sub(a, b, alpha=0.5), (X, Y)),
    "add int64": (lambda a, b: a + b, (WHOLE, integers(4))),
    "add int and float": (lambda a, b: a + b, (WHOLE, floats(4))),
    "add int32 and number": (lambda a: a + 3, (WHOLE.int(),)),
    "numbers": (lambda a: (a + 1.5) * 2 - 0.25, (X,)),
    "number minus tensor": (lambda a: 1 - a, (X,)),
    "mul bool and float": (lambda a, b: a * b, (bools(3, 4, 5), X)),
    "mul int64": (lambda a, b: a * b, (WHOLE, integers(3, 1))),
    "mul 0-d": (lambda a, b: a * b, (torch.tensor(2.5), X)),
    "add 0-d to 0-d": (lambda a, b: a + b, (torch.tensor(2.5), torch.tensor(1.0))),
    "div int": (lambda a, b: a / b, (WHOLE, ROW)),
    "div number": (lambda a: a / 3, (X,)),
    "div floor": (lambda a, b: torch.div(a, b, rounding_mode="floor"), (X, Y)),
    "div trunc": (lambda a, b: torch.div(a, b, rounding_mode="trunc"), (X, Y)),
    "div floor int": (lambda a, b: torch.div(a, b, rounding_mode="floor"), (WHOLE, ROW)),
    "div trunc int": (lambda a, b: torch.div(a, b, rounding_mode="trunc"), (WHOLE, ROW)),
    "floordiv number": (lambda a: a // 2, (WHOLE,)),
    "minimum int": (torch.minimum, (WHOLE, integers(4))),
    "pow 2": (lambda a: a**2, (X,)),
    "pow 0.5": (lambda a: a.abs() ** 0.5, (X,)),
    "pow -1": (lambda a: (a.abs() + 1) ** -1, (X,)),
    # Comparison and logic.
    "eq number": (lambda a: a == 2, (WHOLE,)),
    "ne number": (lambda a: a != 0, (WHOLE,)),
    "gt number": (lambda a: a > 0.5, (X,)),
    "lt int and fraction": (lambda a: a < 1.5, (WHOLE,)),
    "lt 0-d": (lambda a, b: a < b, (torch.tensor(2), torch.tensor(3))),
    "logical_not": (torch.logical_not, (bools(3, 4),)),
    "bitwise_not bool": (lambda a: ~a, (bools(3, 4),)),
    "where broadcast": (torch.where, (bools(4, 1), X, floats(5))),
    # One operand: one bound, kinds of numbers, integers.
    "clamp min": (lambda a: a.clamp(min=0), (X,)),
    "clamp max": (lambda a: a.clamp(max=0.5), (X,)),
    "clamp int": (lambda a: a.clamp(-3, 4), (WHOLE,)),
    "hardtanh": (lambda a: F.hardtanh(a, -0.5, 1), (X,)),
    "relu6": (lambda a: F.relu6(a * 5), (X,)),
    "leaky_relu": (lambda a: F.leaky_relu(a, 0.2), (X,)),
    "leaky_relu default": (F.leaky_relu, (X,)),
    "gelu": (F.gelu, (X,)),
    "gelu tanh": (lambda a: F.gelu(a, approximate="tanh"), (X,)),
    "silu": (F.silu, (X,)),
    "round": (lambda a: (a * 2).round(), (X,)),
    "to int32": (lambda a: (a * 3).to(torch.int32), (X,)),
    "to int64": (lambda a: (a * 3).to(torch.int64), (X,)),
    "to bool": (lambda a: a.to(torch.bool), (WHOLE.int(),)),
    "int64 to float": (lambda a: a.float(), (WHOLE,)),
    "to what it is": (lambda a: a.to(torch.float32) + 0, (X,)),
    # Tensors made from numbers.
    "full_like": (lambda a: a + torch.full_like(a, 3), (X,)),
    "zeros_like int64": (lambda a: a + torch.zeros_like(a, dtype=torch.int64), (X,)),
    "ones": (lambda a: a + torch.ones(5), (X,)),
    "arange": (lambda a: a + torch.arange(5), (X,)),
    # Reductions: several dims, negative ones, kept ones.
    "sum kept": (lambda a: a.sum(dim=(0, -1), keepdim=True), (X,)),
    "sum last": (lambda a: a.sum(-1), (X,)),
    "mean kept": (lambda a: a.mean(-1, keepdim=True), (X,)),
    "amin kept": (lambda a: a.amin(-2, keepdim=True), (X,)),
    "argmax": (lambda a: a.argmax(-1), (X,)),
    "argmin kept": (lambda a: a.argmin(1, keepdim=True), (X,)),
    "softmax inner": (lambda a: a.softmax(1), (X,)),
    "log_softmax": (lambda a: a.log_softmax(-1), (X,)),
    "layer_norm two dims": (lambda a: F.layer_norm(a, (4, 5)), (X,)),
    "layer_norm weight": (lambda a, w: F.layer_norm(a, (5,), w), (X, floats(5))),
    "group_norm": (lambda a: F.group_norm(a, 2), (floats(2, 4, 3),)),
    # Products.
    "addmm alpha beta": (
        lambda c, a, b: torch.addmm(c, a, b, alpha=2, beta=0.5),
        (floats(6), floats(3, 4), floats(4, 6)),
    ),
    "addmm": (torch.addmm, (floats(3, 6), floats(3, 4), floats(4, 6))),
    "matmul of four dims": (torch.matmul, (floats(2, 3, 4, 5), floats(2, 3, 5, 6))),
    "matmul of three and two": (torch.matmul, (floats(2, 4, 5), floats(5, 6))),
    "matmul with a vector": (torch.matmul, (floats(4, 5), floats(5))),
    "linear with bias": (F.linear, (X, floats(7, 5), floats(7))),
    # Look-ups.
    "index": (lambda a, i: a[i], (floats(7), torch.tensor([2, 0, 1]))),
    "index_select": (lambda a, i: a.index_select(-1, i), (X, torch.tensor([2, 0, 1]))),
    "gather": (lambda a, i: a.gather(1, i), (X, integers(3, 2, 5, least=0) % 4)),
    "embedding": (F.embedding, (integers(2, 3, least=0), TABLE)),
    # The same elements elsewhere.
    "repeat": (lambda a: a.repeat(2, 1, 3, 1), (X,)),
    "flip": (lambda a: a.flip(-1, 0), (X,)),
    "pad": (lambda a: F.pad(a, (1, 2)), (X,)),
    "pad two dims": (lambda a: F.pad(a, (1, 2, 0, 3), value=-1.5), (X,)),
    "permute": (lambda a: a.permute(-1, 0, 1), (X,)),
    "transpose": (lambda a: a.transpose(-1, -2) + 0, (X,)),
    "cat last": (lambda a, b: torch.cat([a, b], -1), (X, floats(3, 4, 2))),
    "cat int64": (lambda a, b: torch.cat([a, b]), (WHOLE, integers(2, 4))),
    "cat with itself": (lambda a: torch.cat([a, a, a], 1), (X,)),
    "stack": (lambda a, b: torch.stack([a, b], 1), (X, X + 1)),
    "split": (lambda a: a.split([1, 2, 1], 1), (X,)),
    "chunk": (lambda a: a.chunk(2, -2), (X,)),
    "unbind": (lambda a: a.unbind(0), (X,)),
    "expand": (lambda a: a.expand(2, 3, -1, 5) + 0, (floats(4, 1),)),
    "squeeze": (lambda a: a.squeeze(), (floats(1, 3, 1, 2),)),
    "squeeze last": (lambda a: a.squeeze(-1), (floats(1, 3, 1),)),
    "unsqueeze last": (lambda a: a.unsqueeze(-1), (X,)),
    "select from the end": (lambda a: a[:, -1], (X,)),
    "slice by steps": (lambda a: a[:, 1::2], (X,)),
    "slice from the end": (lambda a: a[..., -3:-1], (X,)),
    "slice int64": (lambda a: a[1:], (WHOLE,)),
    "view with -1": (lambda a: a.view(-1, 10), (Y,)),
    "view as 0-d": (lambda a: a.reshape(()), (floats(1, 1),)),
    "clone": (torch.clone, (X,)),
    "an input given back": (lambda a, b: (a + b, a), (X, Y)),
    # The same with live dims.
    "live add": (lambda a: a + a[0] * 2, LIVE),
    "live sum kept": (lambda a: a.sum(dim=(0, -1), keepdim=True), LIVE),
    "live softmax": (lambda a: a.softmax(-1), LIVE),
    "live view": (lambda a: a.view(a.shape[0], -1), LIVE),
    "live flatten": (lambda a: a.flatten(0, 1), LIVE),
    "live permute": (lambda a: a.permute(2, 0, 1), LIVE),
    "live cat": (lambda a: torch.cat([a, a], 1), LIVE),
    "live slice": (lambda a: a[:, 1:3], LIVE),
    "live last row": (lambda a: a[-1], LIVE),
    "live layer_norm": (lambda a: F.layer_norm(a, (5,)), LIVE),
    "live linear": (lambda a, w: F.linear(a, w), [(*call, Y) for call in LIVE]),
    "live full": (lambda a: a + torch.full((a.shape[0], 1, 1), 2.0), LIVE),
    "live embedding": (
        F.embedding,
        [(integers(1, length, least=0), TABLE) for length in (6, 1, 4, 6)],
    ),
    # What the exporter leaves a kernel outside the delegate for.
    "where number": (lambda a: torch.where(a > 0, a, 0.5), (X,)),
    "masked_fill": (lambda a, m: a.masked_fill(m, float("-inf")), (X, bools(4, 5))),
    "live tril": (lambda a: a[:, 0].tril(), LIVE),
    "rms_norm": (lambda a: F.rms_norm(a, (5,), eps=1e-3), (X,)),
    "attention": (F.scaled_dot_product_attention, (ATTENDED, ATTENDED + 1, ATTENDED - 1)),
    "attention with a mask": (
        F.scaled_dot_product_attention,
        (ATTENDED, ATTENDED + 1, ATTENDED - 1, torch.tensor([[True] * 3, [False] * 3] * 2)[:3]),
    ),
    "live causal attention": (
        lambda a: F.scaled_dot_product_attention(a, a, a, is_causal=True),
        [(floats(1, 2, length, 4),) for length in (6, 1, 3, 6)],
    ),
}


class Module(torch.nn.Module):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


def export_form(name: str) -> StockCase:
    function, given = FORMS[name]
    calls = given if isinstance(given, list) else [given]
    program = to_edge_transform_and_lower(
        torch.export.export(Module(function), calls[0], dynamic_shapes=live_dims(calls)),
        partitioner=[VulkanPartitioner()],
    ).to_executorch()
    return StockCase(
        suite="forms",
        name=name,
        pte=np.frombuffer(program.buffer, np.uint8),
        calls=[[arrays(inputs), arrays(function(*inputs))] for inputs in calls],
        atol=TOLERANCE,
        rtol=TOLERANCE,
    )


def live_dims(calls: list[Inputs]) -> tuple[tuple[dict[int, Any], ...], ...]:
    """Return a dim of each size that differs between the calls, for the module's *inputs."""
    sizes_of = [[t.shape for t in tensors] for tensors in zip(*calls, strict=True)]
    return (
        tuple(
            {
                axis: torch.export.Dim(f"live{axis}", max=max(sizes))
                for axis, sizes in enumerate(zip(*shapes, strict=True))
                if len(set(sizes)) > 1
            }
            for shapes in sizes_of
        ),
    )


def arrays(tensors: torch.Tensor | tuple[torch.Tensor, ...]) -> list[np.ndarray]:
    given = [tensors] if isinstance(tensors, torch.Tensor) else tensors
    return [tensor.numpy() for tensor in given]
