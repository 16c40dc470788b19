"""Every kernel that the host computes against torch's own, called as the exporter writes calls."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.ao.quantization.fx import _decomposed  # noqa: F401  (defines quantized_decomposed)

from py_runtime.base.errors import InputError
from py_runtime.pte import PteError, load, open_pte
from py_runtime.pte.host_kernels import HOST_KERNELS
from tests.pte.memory_source import MemorySource
from tests.pte.written import (
    Scalar,
    Table,
    Vector,
    call_kernel,
    integer,
    method,
    pte,
    tensor,
    u8,
    union,
)
from tests.runners import NativeRunner, wait

pytestmark = pytest.mark.torch

NAMES = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "bool",
}
generator = torch.Generator().manual_seed(16)
X = torch.randn(3, 4, 5, generator=generator)
Y = torch.randn(4, 5, generator=generator)
POSITIVE = X.abs() + 0.1
WHOLE = torch.randint(-9, 10, (3, 4), generator=generator)
ROW = torch.tensor([1, -2, 3, 4])
MASK = X > 0
ODD = torch.tensor([0.0, -1.5, torch.inf, -torch.inf, torch.nan, 2.5, 0.5, -0.5])
FIRST, SECOND = torch.tensor([2, 0, -1]), torch.tensor([1, 3, 0])

# kernel: calls of it; a torch.dtype at the end is the output's, where it is not float32
CALLS: dict[str, list[tuple[Any, ...]]] = {
    "aten::scalar_tensor.out": [(2.5,), (7, torch.int64)],
    "aten::full.out": [([2, 3], 2.5), ([4], 3, torch.int64)],
    "aten::full_like.out": [(X, 1.5), (WHOLE, True, torch.bool)],
    "aten::add.out": [(X, Y), (WHOLE, ROW, torch.int64), (WHOLE, Y[0, :4])],
    "aten::add.Scalar_out": [(X, 2.5), (WHOLE, 3, torch.int64)],
    "aten::sub.out": [(X, Y), (WHOLE, ROW, torch.int64)],
    "aten::sub.Scalar_out": [(X, 0.1)],
    "aten::mul.out": [(X, Y), (WHOLE, ROW, torch.int64), (MASK, X)],
    "aten::mul.Scalar_out": [(X, 0.1)],
    "aten::div.out": [(X, Y), (WHOLE, ROW)],
    "aten::div.Scalar_out": [(X, 3), (WHOLE, 3)],
    "aten::div.out_mode": [
        *((X, Y, mode) for mode in ("floor", "trunc")),
        *((WHOLE, ROW, mode, torch.int64) for mode in ("floor", "trunc")),
    ],
    "aten::pow.Tensor_Scalar_out": [(X, 2), (POSITIVE, -0.5), (WHOLE, 2, torch.int64)],
    "aten::pow.Tensor_Tensor_out": [(POSITIVE, Y)],
    "aten::maximum.out": [(X, Y), (WHOLE, ROW, torch.int64)],
    "aten::minimum.out": [(X, Y)],
    "aten::clamp.out": [(X, -0.5, None), (X, None, 0.5), (WHOLE, -2, 3, torch.int64)],
    "aten::abs.out": [(X,), (WHOLE, torch.int64)],
    "aten::neg.out": [(X,)],
    "aten::reciprocal.out": [(X,), (ROW,)],
    "aten::sqrt.out": [(POSITIVE,), (ODD,)],
    "aten::rsqrt.out": [(POSITIVE,), (ROW.abs(),)],
    "aten::exp.out": [(X,), (ODD,)],
    "aten::log.out": [(POSITIVE,), (ODD,)],
    "aten::log1p.out": [(POSITIVE * 1e-6,)],
    "aten::expm1.out": [(X * 1e-6,)],
    "aten::log2.out": [(POSITIVE,)],
    "aten::log10.out": [(POSITIVE,)],
    "aten::sin.out": [(X,)],
    "aten::cos.out": [(X,)],
    "aten::tanh.out": [(X,)],
    "aten::sigmoid.out": [(X,), (ODD * 100,)],
    "aten::relu.out": [(X,)],
    "aten::floor.out": [(ODD,)],
    "aten::ceil.out": [(ODD,)],
    "aten::trunc.out": [(ODD,)],
    "aten::round.out": [(ODD,)],
    "aten::sign.out": [(X,)],
    **{
        f"aten::{name}.{form}_out": [(a, b, torch.bool) for a, b in pairs]
        for name in ("eq", "ne", "lt", "le", "gt", "ge")
        for form, pairs in {
            "Tensor": [(WHOLE, ROW), (ROW, ROW.float() + 0.5), (ODD, ODD)],
            "Scalar": [(WHOLE, 2), (ROW, 2.5), (torch.tensor([0.1, 0.2]), 0.1), (MASK, 1)],
        }.items()
    },
    **{
        f"aten::logical_{name}.out": [(MASK, Y > 0, torch.bool), (WHOLE, ROW - 1, torch.bool)]
        for name in ("and", "or", "xor")
    },
    **{
        f"aten::bitwise_{name}.Tensor_out": [(MASK, Y > 0, torch.bool), (WHOLE, ROW, torch.int64)]
        for name in ("and", "or", "xor")
    },
    "aten::logical_not.out": [(MASK, torch.bool), (WHOLE, torch.bool)],
    "aten::bitwise_not.out": [(MASK, torch.bool), (WHOLE, torch.int64)],
    "aten::isnan.out": [(ODD, torch.bool)],
    "aten::isinf.out": [(ODD, torch.bool)],
    "aten::where.self_out": [(MASK, X, Y)],
    "aten::masked_fill.Scalar_out": [(X, MASK, -torch.inf)],
    "aten::sum.IntList_out": [
        (X, None, False), (X, [], False), (X, [0, -1], True), (MASK, [1], False, torch.int64),
    ],
    "aten::mean.out": [(X, None, False), (X, [-1], True)],
    "aten::amax.out": [(X, [], False), (X, [1, 2], True)],
    "aten::amin.out": [(X, [-2], False)],
    "aten::any.dims_out": [(MASK, [0, 2], False, torch.bool), (MASK, None, True, torch.bool)],
    "aten::any.out": [(MASK, -1, True, torch.bool)],
    "aten::any.all_out": [(MASK, torch.bool)],
    "aten::argmax.out": [(X, None, False, torch.int64), (X, -2, True, torch.int64)],
    "aten::argmin.out": [(X, 0, False, torch.int64)],
    "aten::max.dim_max": [(X, 1, False), (X, -1, True)],
    "aten::min.dim_min": [(X, 2, False)],
    "aten::max.unary_out": [(X,)],
    "aten::min.unary_out": [(X,)],
    "aten::topk.values": [(X, 3), (X, 2, 0, False), (torch.tensor([1.0, torch.nan, 3.0]), 2)],
    "aten::sort.values": [(X,), (X, 1, True), (torch.tensor([2.0, torch.nan, -1.0]),)],
    "aten::cumsum.out": [(X, 1), (WHOLE, -1, torch.int64)],
    "aten::_softmax.out": [(X * 50, -1, False)],
    "aten::_log_softmax.out": [(X * 50, 1, False)],
    "aten::index.Tensor_out": [
        (X, [FIRST]), (X, [None, SECOND]), (X, [FIRST, None, SECOND]), (X, [FIRST, SECOND[:1]]),
    ],
    "aten::index_put.out": [
        (X, [FIRST], Y), (X, [None, SECOND], Y[:1]), (X, [MASK], torch.tensor(5.0)),
        (X, [torch.tensor([1, 1])], Y, True),
    ],
    "aten::embedding.out": [(Y, WHOLE.abs() % 4)],
    "aten::clone.out": [(X,)],
    "aten::_to_copy.out": [(X * 9, torch.int64), (WHOLE,), (WHOLE, torch.bool)],
    "quantized_decomposed::quantize_per_tensor.out": [
        (X, 0.05, 3, -128, 127, torch.int8), (X, 0.3, 4, 0, 9, torch.uint8),
    ],
    "quantized_decomposed::dequantize_per_tensor.out": [
        ((X * 20).to(torch.int8), 0.05, 3, -128, 127, torch.int8),
    ],
}  # fmt: skip


def overload_of(kernel: str) -> Any:
    namespace, _, name = kernel.partition("::")
    packet, _, overload = name.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace), packet), overload)


def answered(kernel: str, call: tuple[Any, ...]) -> tuple[list[Any], list[Tensor]]:
    """Return all arguments, defaults included, and torch's results for them."""
    if "quantize_per_tensor" in kernel:  # torch has them without an `out`
        op = overload_of(kernel.replace(".out", ".default"))
        more = [argument.default_value for argument in op._schema.arguments[len(call) :]]
        return [*call, *more], [op(*call)]
    *given, dtype = call if isinstance(call[-1], torch.dtype) else (*call, torch.float32)
    schema = overload_of(kernel)._schema.arguments
    outs = [argument.name for argument in schema if argument.is_out]
    args = [argument for argument in schema if not argument.is_out]
    filled = [*given, *(argument.default_value for argument in args[len(given) :])]
    empty = [torch.empty(0, dtype=dtype), torch.empty(0, dtype=torch.int64)]
    results = dict(zip(outs, empty, strict=False))
    plain = [argument.name for argument in args if not argument.kwarg_only]
    named = dict(zip([a.name for a in args], filled, strict=True))
    options = {name: value for name, value in named.items() if name not in plain}
    overload_of(kernel)(*(named[name] for name in plain), **options, **results)
    return filled, [results[name] for name in outs]


class Written:
    """Values of a method, one after the other."""

    def __init__(self) -> None:
        self.values: list[Table] = []
        self.inputs: list[int] = []
        self.arrays: list[np.ndarray] = []

    def add(self, value: Table) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def argument(self, value: Any, dynamic: bool) -> int:
        if isinstance(value, Tensor):
            self.inputs.append(self.add(tensor(NAMES[value.dtype], *value.shape, dynamic=dynamic)))
            self.arrays.append(value.numpy())
            return self.inputs[-1]
        if isinstance(value, list):
            ids = [-1 if each is None else self.argument(each, dynamic) for each in value]
            has_tensors = any(isinstance(each, Tensor) for each in value)
            kind, form = (11, "i") if has_tensors else (7, "q")
            return self.add(union(kind, {0: Vector(form, ids)}))
        return self.add(plain(value))


def plain(value: Any) -> Table:
    if value is None:
        return union(1, {})
    if isinstance(value, bool):
        return union(3, {0: u8(value)})
    if isinstance(value, float):
        return union(4, {0: Scalar("d", value)})
    if isinstance(value, str):
        return union(6, {0: value})
    return integer(1 if isinstance(value, torch.dtype) else value)


def file_of(
    kernel: str, args: Sequence[Any], outs: Sequence[Tensor], dynamic: bool = False
) -> tuple[bytes, list[np.ndarray]]:
    """Write a method that is this call alone: arguments, outputs, and all outputs once more."""
    written = Written()
    ids = [written.argument(arg, dynamic) for arg in args]
    targets = [written.add(tensor(NAMES[out.dtype], *out.shape, dynamic=dynamic)) for out in outs]
    last = targets[0] if len(targets) == 1 else written.add(union(10, {0: Vector("i", targets)}))
    call = call_kernel(0, *ids, *targets, last)
    plan = method("forward", written.values, written.inputs, targets, [call], operators=[kernel])
    return pte([plan], []), written.arrays


def compare(found: Sequence[np.ndarray], wanted: Sequence[Tensor]) -> None:
    for array, each in zip(found, wanted, strict=True):
        expected = each.numpy()
        assert (array.dtype, array.shape) == (expected.dtype, expected.shape)
        if array.dtype.kind == "f":
            np.testing.assert_allclose(array, expected, rtol=2e-6, atol=1e-6)
        else:
            np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("kernel", CALLS)
def test_equals_torch(kernel: str, native: NativeRunner) -> None:
    for call in CALLS[kernel]:
        args, wanted = answered(kernel, call)
        file, inputs = file_of(kernel, args, wanted)
        module = wait(load(MemorySource(file), native.device))
        compare(wait(module.run(inputs)), wanted)


def test_all_are_compared() -> None:
    """Torch itself does not have the one with a test of its own."""
    own = {name for name in HOST_KERNELS if name.startswith("dim_order_ops::")}
    assert set(CALLS) | own == set(HOST_KERNELS)


@pytest.mark.parametrize("place", [0, 1])
def test_lists_of_tensors_have_nothing_else(place: int, native: NativeRunner) -> None:
    written = Written()
    numbers = [written.add(integer(7)) for _ in range(2)]
    x = written.argument(X, dynamic=False)
    taken = written.add(union(11, {0: Vector("i", [numbers[place]])}))
    out = written.add(tensor("f32", *X.shape))
    call, operators = call_kernel(0, x, taken, out, out), ["aten::index.Tensor_out"]
    plan = method("forward", written.values, written.inputs, [out], [call], operators=operators)
    with pytest.raises(PteError):
        wait(load(MemorySource(pte([plan], [])), native.device))


@pytest.mark.parametrize("kernel", ["_to_dim_order_copy", "_clone_dim_order"])
def test_copies_in_the_order_of_dims(kernel: str, native: NativeRunner) -> None:
    wanted = [(X * 9).to(torch.int64)]
    name = f"dim_order_ops::{kernel}.out"
    file, inputs = file_of(name, [X * 9, False, [0, 1, 2]], wanted)
    compare(wait(wait(load(MemorySource(file), native.device)).run(inputs)), wanted)


@pytest.mark.parametrize(
    ("kernel", "more"),
    [
        ("aten::mean.out", ([0], True)),
        ("aten::topk.values", (2, 0)),
        ("aten::maximum.out", (Y,)),
        ("aten::index_put.out", ([torch.tensor([0])], Y)),
    ],
)
def test_live_dims_on_one_module(kernel: str, more: tuple[Any, ...], native: NativeRunner) -> None:
    args, outs = answered(kernel, (X, *more))
    file, _ = file_of(kernel, args, outs, dynamic=True)
    module = wait(load(MemorySource(file), native.device))
    for length in (3, 2, 3):
        filled, wanted = answered(kernel, (X[:length] * 2, *more))
        _, inputs = file_of(kernel, filled, wanted)
        compare(wait(module.run(inputs)), wanted)


@pytest.mark.parametrize(
    ("kernel", "call", "given"),
    [
        ("aten::index.Tensor_out", (X, [FIRST]), [X, FIRST + 7]),
        ("aten::index_put.out", (X, [FIRST], Y), [X, FIRST - 9, Y]),
        ("aten::topk.values", (X, 3, 0), [X[:2]]),
        ("aten::maximum.out", (X, Y), [X, Y[:3]]),
    ],
)
def test_places_and_dims_that_cannot_be_are_told(
    kernel: str, call: tuple[Any, ...], given: list[Tensor], native: NativeRunner
) -> None:
    file, _ = file_of(kernel, *answered(kernel, call), dynamic=True)
    module = wait(load(MemorySource(file), native.device))
    with pytest.raises(InputError, match=f"method 'forward', {kernel}: "):
        wait(module.run([each.numpy() for each in given]))


@pytest.mark.parametrize(
    ("kernel", "args", "outs"),
    [
        ("aten::sum.IntList_out", [X, [3], False, None], [X[0]]),
        ("aten::sum.IntList_out", [X, [0, -3], False, None], [X[0]]),
        ("aten::sum.IntList_out", [X, [0], False, None], [X]),
        ("aten::topk.values", [X, 6, -1, True, True], [X, WHOLE]),
        ("aten::topk.values", [X, 5, -1, True, True], [X]),
        ("aten::maximum.out", [X, Y.T], [X]),
        ("aten::index.Tensor_out", [X, [MASK]], [X]),
        ("aten::index.Tensor_out", [Y, [FIRST, FIRST, FIRST]], [FIRST]),
        ("aten::full.out", [[1 << 20, 1 << 20], 1.0], [X]),
        ("aten::full.out", [[-1], 1.0], [X]),
        ("aten::div.out_mode", [X, X, 3], [X]),
        ("quantized_decomposed::quantize_per_tensor.out", [X, None, 0, 0, 9, 1], [X]),
    ],
)
def test_a_call_of_another_form_is_refused(
    kernel: str, args: list[Any], outs: list[Tensor]
) -> None:
    file, _ = file_of(kernel, args, outs)
    with pytest.raises(PteError, match="of an unknown form"):
        wait(open_pte(MemorySource(file)))


def test_in_both_runtimes(run: Any) -> None:
    """Integers are 32 bits wide by themselves in the page."""
    for kernel, call in (
        ("aten::topk.values", (X, 3)),
        ("aten::index_put.out", (X, [FIRST], Y)),
        ("aten::sum.IntList_out", (MASK, None, False, torch.int64)),
        ("quantized_decomposed::quantize_per_tensor.out", (X, 0.05, 3, -9, 9, torch.int8)),
    ):
        args, wanted = answered(kernel, call)
        file, inputs = file_of(kernel, args, wanted)
        (found,) = run(file, inputs)
        compare(found, wanted)
