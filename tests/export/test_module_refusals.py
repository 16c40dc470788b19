"""Modules that cannot be exported: what is said about them."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

from export.errors import ExportError, UnsupportedOpsError
from export.module import export_module
from tests.export.ordinary_modules import Function

pytestmark = pytest.mark.torch

LENGTH = Dim("S", min=1, max=24)


class Filter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x[:, None])[:, 0]


class Three(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.filter = Filter()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        best = x.topk(2, dim=-1).values
        total = x.cumprod(-1)
        return self.filter(x), best, total


def test_all_unsupported_ops_are_named_at_once_with_module_and_line() -> None:
    with pytest.raises(UnsupportedOpsError) as caught:
        export_module(Three(), (torch.randn(2, 24, 32),), ({1: LENGTH},))
    header, *faults = str(caught.value).splitlines()
    assert header == "3 ops of this module are not supported:"
    topk, cumprod, conv = faults
    here = "test_module_refusals.py:"
    assert topk.startswith("  aten.topk.default: best = x.topk(2, dim=-1).values (" + here)
    assert cumprod.startswith("  aten.cumprod.default: total = x.cumprod(-1) (" + here)
    assert "aten.convolution.default in filter" in conv
    assert "return self.conv(x[:, None])[:, 0] (" + here in conv


def turned(x: Tensor) -> Tensor:
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * pairs).flatten(-2)


def branching(x: Tensor) -> Tensor:
    return x + 1 if x.sum() > 0 else x


def written(x: Tensor) -> Tensor:
    return x.mul_(2)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (turned, ["complex numbers", "cos and sin"]),
        (lambda x: x[x > 0].sum(), ["depends on data", "torch.where"]),
        (lambda x: x.nonzero().sum(), ["aten.nonzero.default", "depends on data"]),
        (branching, ["depend on data", "x + 1 if x.sum() > 0", "torch.where"]),
        (lambda x: x + float(x.detach().numpy().sum()), ["cannot trace", ".numpy()"]),
        (lambda x: x.view(2, 24, 4, 8), ["dynamic_shapes promise more", "constant (24)"]),
        (lambda x: (x, 5), ["output 1 of the module is 5"]),
        (written, ["writes into x in place", "clone()"]),
        (lambda x: (x.double() * 2).float(), ["torch.float64", "module.float()"]),
        (lambda x: x + torch.rand(32), ["aten.rand.default"]),
        (lambda x: x * (x.shape[1] % 3), ["1 ops", "mod"]),
        (lambda x: x * x[0, 0, 0].long().item(), ["live scalar", "of an input"]),
    ],
    ids=[
        "complex", "masked selection", "nonzero", "branch", "numpy", "fixed length", "number",
        "input written", "double", "random", "symint arithmetic", "item of a result",
    ],
)  # fmt: skip
def test_the_error_says_what_and_what_to_do(function: Callable[..., Any], words: list[str]) -> None:
    with pytest.raises(ExportError) as caught:
        export_module(Function(function), (torch.randn(2, 24, 32),), ({1: LENGTH},))
    for word in words:
        assert word in str(caught.value)


def test_a_size_without_a_bound_is_named() -> None:
    def grow(x: Tensor, at: Tensor) -> Tensor:
        return torch.zeros(at[0].item()) + x.sum()

    with pytest.raises(ExportError, match="no upper bound"):
        export_module(Function(grow), (torch.randn(2, 24), torch.tensor([3])))


def test_an_input_of_another_dtype_is_named() -> None:
    with pytest.raises(ExportError, match=r"input 'x' is torch\.float16"):
        export_module(Function(lambda x: x), (torch.randn(2, 24).half(),))


def test_training_mode_is_given_back() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout()).train()
    export_module(module, (torch.randn(2, 4),))
    assert module.training
