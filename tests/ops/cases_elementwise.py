"""Binary and unary ops, where and casts: broadcasting, dtypes, extremes, folded grids."""

from collections.abc import Iterator
from typing import Any

import torch

from py_runtime.base.dtypes import F32, I64
from py_runtime.program.writer import ProgramWriter
from tests.golden import EXACT, Case
from tests.ops.op_cases import FLOATS, RELATIVE, Row, case_of

Shape = tuple[int, ...]
COMPARISONS = ("eq", "ne", "ge", "gt", "le", "lt")


def cases() -> Iterator[Case]:
    yield from broadcasting()
    yield from integers()
    yield from scalars()
    yield from powers()
    yield from functions()
    yield from extremes()
    yield from casts()
    yield from choices()
    yield from large_grid()


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def whole(*shape: int, low: int = -9, high: int = 9, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randint(low, high + 1, shape, generator=generator)


def arithmetic_rows() -> list[Row]:
    return [
        Row("aten.add.Tensor", lambda a, b: [a, b, 1], lambda a, b: a + b),
        Row("aten.add.Tensor", lambda a, b: [a, b, 2.5], lambda a, b: a + 2.5 * b),
        Row("aten.sub.Tensor", lambda a, b: [a, b, 1], lambda a, b: a - b),
        Row("aten.mul.Tensor", lambda a, b: [a, b], lambda a, b: a * b),
        Row("aten.div.Tensor", lambda a, b: [a, b], lambda a, b: a / b),
        Row("aten.minimum.default", lambda a, b: [a, b], torch.minimum),
        Row("aten.maximum.default", lambda a, b: [a, b], torch.maximum),
    ]


def comparison_rows() -> list[Row]:
    rows = [
        Row(f"aten.{name}.Tensor", lambda a, b: [a, b], getattr(torch, name))
        for name in COMPARISONS
    ]
    rows += [
        Row(f"aten.{name}.default", lambda a, b: [a, b], getattr(torch, name))
        for name in ("logical_and", "logical_or")
    ]
    return rows


# Live shapes of a and b, the largest first, smaller ones, one row, and the largest again.
BROADCASTS: dict[str, list[tuple[Shape, Shape]]] = {
    "equal shapes": [((2, 33, 5),) * 2, ((2, 7, 5),) * 2, ((2, 1, 5),) * 2, ((2, 33, 5),) * 2],
    "a vector": [((32, 33), (33,)), ((5, 33), (33,)), ((1, 33), (33,)), ((32, 33), (33,))],
    "both stretch": [((8, 1, 6), (5, 1)), ((3, 1, 6), (4, 1)), ((8, 1, 6), (5, 1))],
    "one element": [((3, 5), (1, 1)), ((1, 5), (1, 1)), ((3, 5), (1, 1))],
    "no dims": [((), (4, 3)), ((), (2, 3))],
    "either may be one row": [
        ((6, 4), (6, 4)),
        ((6, 4), (1, 4)),
        ((1, 4), (5, 4)),
        ((6, 4), (6, 4)),
    ],
    "eight axes": [((2, 1, 3, 1, 2, 1, 5, 1), (1, 3, 1, 2, 1, 4, 1, 3))],
}


def broadcasting() -> Iterator[Case]:
    for name, shapes in BROADCASTS.items():
        calls = [(randn(*a), randn(*b, seed=1)) for a, b in shapes]
        yield case_of(f"binary, {name}", arithmetic_rows(), calls, FLOATS)
    calls = [
        (whole(*a, low=-1, high=1).float(), whole(*b, low=-1, high=1, seed=1).float())
        for a, b in BROADCASTS["both stretch"]
    ]
    yield case_of("compare floats", comparison_rows(), calls, EXACT)


def integers() -> Iterator[Case]:
    rows = [
        Row("aten.add.Tensor", lambda a, b: [a, b, 1], lambda a, b: a + b),
        Row("aten.sub.Tensor", lambda a, b: [a, b, 3], lambda a, b: a - 3 * b),
        Row("aten.mul.Tensor", lambda a, b: [a, b], lambda a, b: a * b),
        Row("aten.minimum.default", lambda a, b: [a, b], torch.minimum),
        Row("aten.maximum.default", lambda a, b: [a, b], torch.maximum),
        Row("aten.bitwise_and.Tensor", lambda a, b: [a, b], torch.bitwise_and),
        Row("aten.bitwise_or.Tensor", lambda a, b: [a, b], torch.bitwise_or),
        Row("aten.add.Scalar", lambda a, b: [a, 7, 2], lambda a, b: a + 14),
        Row("aten.mul.Scalar", lambda a, b: [a, 3.0], lambda a, b: a * 3),
        Row("aten.gt.Scalar", lambda a, b: [a, 2], lambda a, b: a > 2),
        Row("aten.lt.Scalar", lambda a, b: [a, 2.5], lambda a, b: a < 2.5),
        *comparison_rows(),
    ]
    shapes = BROADCASTS["both stretch"]
    calls = [(whole(*a), whole(*b, seed=1)) for a, b in shapes]
    yield case_of("integers", rows, calls, EXACT)
    calls = [(whole(*a).int(), whole(*b, seed=1).int()) for a, b in shapes]
    yield case_of("integers of 32 bits", rows, calls, EXACT)
    division = [
        Row(
            "aten.div.Tensor_mode",
            lambda a, b, mode=mode: [a, b, mode],
            lambda a, b, mode=mode: torch.div(a, b, rounding_mode=mode),
        )
        for mode in ("floor", "trunc")
    ]
    calls = [(whole(40, 3, low=-50, high=50), whole(3, low=1, high=7) * sign) for sign in (1, -1)]
    yield case_of("integers divided whole", division, calls, EXACT)
    calls_f = [(a / 4, b / 2) for a, b in calls]
    yield case_of("floats divided whole", division, calls_f, EXACT)
    # Division of integers, and integers beside floats, are f32.
    mixed = [
        Row("aten.div.Tensor", lambda i, f, m: [i, 4], lambda i, f, m: i.double() / 4),
        Row("aten.mul.Tensor", lambda i, f, m: [i, f], lambda i, f, m: i * f),
        Row("aten.add.Tensor", lambda i, f, m: [f, i, 0.5], lambda i, f, m: f + 0.5 * i),
        Row("aten.mul.Tensor", lambda i, f, m: [f, m], lambda i, f, m: f * m),
        Row("aten.mul.Tensor", lambda i, f, m: [i, 0.5], lambda i, f, m: i.double() * 0.5),
        Row("aten.ge.Tensor", lambda i, f, m: [i, f], lambda i, f, m: i >= f),
    ]
    calls_m = [
        (whole(rows_, 5), randn(rows_, 5), whole(rows_, 1, low=0, high=1).bool())
        for rows_ in (9, 1, 9)
    ]
    yield case_of("integers beside floats", mixed, calls_m, FLOATS)
    bools = [
        Row("aten.mul.Tensor", lambda a, b: [a, b], lambda a, b: a * b),
        Row("aten.logical_and.default", lambda a, b: [a, b], torch.logical_and),
        Row("aten.bitwise_and.Tensor", lambda a, b: [a, b], torch.bitwise_and),
        Row("aten.bitwise_or.Tensor", lambda a, b: [a, b], torch.bitwise_or),
        Row("aten.bitwise_not.default", lambda a, b: [a], lambda a, b: ~a),
        Row("aten.logical_not.default", lambda a, b: [b], lambda a, b: ~b),
        Row("aten.eq.Tensor", lambda a, b: [a, b], torch.eq),
    ]
    calls = [
        (whole(*a, low=0, high=1).bool(), whole(*b, low=0, high=1, seed=1).bool())
        for a, b in shapes
    ]
    yield case_of("bools", bools, calls, EXACT)


def scalars() -> Iterator[Case]:
    rows = [
        Row("aten.add.Tensor", lambda x, s: [x, 2, 1], lambda x, s: x + 2),
        Row("aten.sub.Scalar", lambda x, s: [x, 0.5, 3], lambda x, s: x - 1.5),
        Row("aten.mul.Tensor", lambda x, s: [x, 0.1], lambda x, s: x * 0.1),
        Row("aten.div.Scalar", lambda x, s: [x, 3], lambda x, s: x / 3),
        Row("aten.mul.Scalar", lambda x, s: [x, s], lambda x, s: x * s),
        Row("aten.ne.Scalar", lambda x, s: [x, 0.0], lambda x, s: x != 0),
    ]
    calls = [(randn(n, 5), s) for n, s in ((33, 3), (33, 4), (1, -7), (33, 0))]
    yield case_of("numbers in b's place", rows, calls, FLOATS)


def powers() -> Iterator[Case]:
    exponents = (0, 1, 2, 3, -1, -2, 5.0)
    rows = [
        Row("aten.pow.Tensor_Scalar", lambda x, e=e: [x, e], lambda x, e=e: x**e) for e in exponents
    ]
    bases = torch.tensor([-3.0, -1.5, -1.0, -0.25, 0.5, 1.0, 2.0, 7.5])
    yield case_of("pow of negative bases", rows, [(bases,), (bases[:1],), (bases,)], FLOATS)
    rows = [
        Row("aten.pow.Tensor_Scalar", lambda x, e=e: [x, e], lambda x, e=e: x**e)
        for e in (0.5, -0.5, 1.7, 1 / 3)
    ]
    yield case_of("pow of roots", rows, [(randn(33).abs() * 5,)], FLOATS)
    tensors = [Row("aten.pow.Tensor_Tensor", lambda a, b: [a, b], torch.pow)]
    calls: list[Any] = [
        (randn(n, 1) * 2, torch.tensor([-3.0, -2.0, 0.0, 1.0, 2.0, 3.0, 4.0])) for n in (20, 3, 20)
    ]
    yield case_of("pow of two tensors", tensors, calls, FLOATS)
    special = torch.tensor([0.0, 0.0, 0.0, -2.0, -8.0, 4.0, -1.0])
    exponent = torch.tensor([0.0, 2.5, -1.0, 0.5, 3.0, -0.5, 1025.0])
    yield case_of("pow at zero, and where it is NaN", tensors, [(special, exponent)], FLOATS)
    calls = [(whole(7, 1, low=-3, high=3), whole(4, low=0, high=5))]
    yield case_of("pow of integers", tensors, calls, EXACT)


def unary(name: str, *more: Any, golden: Any = None) -> Row:
    function = golden or getattr(torch, name, None) or getattr(torch.nn.functional, name)
    return Row(f"aten.{name}.default", lambda x: [x, *more], function)


SMOOTH = [
    *(unary(name) for name in ("sigmoid", "silu", "tanh", "relu", "neg", "abs", "sin", "cos")),
    unary("round"),
    unary("hardswish"),
    unary("gelu", "none"),
    unary("gelu", "tanh", golden=lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
    unary("clamp", -0.5, 1.5, golden=lambda x: x.clamp(-0.5, 1.5)),
    unary("clamp", None, 0.25, golden=lambda x: x.clamp(max=0.25)),
    unary("clamp", 0, None, golden=lambda x: x.clamp(min=0)),
    unary("hardtanh", -1.0, 1.0),
    unary("leaky_relu", 0.01),
    unary("logical_not"),
]


def functions() -> Iterator[Case]:
    calls = [(randn(2, n, 7) * 3,) for n in (33, 5, 1, 33)]
    yield case_of("unary functions", SMOOTH, calls, FLOATS)
    positive = [unary(name) for name in ("log", "sqrt", "rsqrt")]
    calls = [(randn(n, 7).abs() * 20 + 1e-3,) for n in (33, 1, 33)]
    yield case_of("unary functions of positive numbers", positive, calls, FLOATS)
    calls = [(randn(n, 7) * 3 - 3,) for n in (33, 1, 33)]
    yield case_of("exp", [unary("exp")], calls, FLOATS)
    of_integers = [
        unary("neg"),
        unary("abs"),
        unary("relu"),
        unary("clamp", -2, 4, golden=lambda x: x.clamp(-2, 4)),
        unary("clamp", None, 3, golden=lambda x: x.clamp(max=3)),
        unary("bitwise_not"),
        unary("logical_not"),
    ]
    yield case_of("unary functions of integers", of_integers, [(whole(5, 9),)], EXACT)


def extremes() -> Iterator[Case]:
    far = torch.tensor([-100.0, -88.0, -20.0, -9.0, -6.0, 6.0, 9.0, 20.0, 88.0, 100.0])
    yield case_of("unary functions far out", SMOOTH, [(far,)], FLOATS)
    yield case_of("exp far out", [unary("exp")], [(far[:9],)], RELATIVE)
    near = torch.tensor([-0.3, -0.2, -1e-3, -1e-8, 0.0, 1e-8, 1e-3, 0.2, 0.25, 0.3])
    yield case_of("unary functions near zero", SMOOTH, [(near,)], FLOATS)
    ties = torch.tensor([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5])
    yield case_of("round to even", [unary("round")], [(ties,)], EXACT)
    angles = torch.linspace(-40_000, 40_000, 2001)
    yield case_of("large angles", [unary("sin"), unary("cos")], [(angles,)], FLOATS)


def casts() -> Iterator[Case]:
    nulls = [None] * 6

    def to(dtype: torch.dtype) -> list[Row]:
        return [
            Row(name, lambda x: [x, *nulls], lambda x: x.to(dtype))
            for name in ("aten._to_copy.default", "dim_order_ops._to_dim_order_copy.default")
        ]

    floats = [(randn(n, 3) * 5,) for n in (9, 1, 9)]
    yield case_of("cast floats to integers", to(torch.int64) + to(torch.int32), floats, EXACT)
    with_zeros = [(x * (x > 0),) for (x,) in floats]
    yield case_of("cast floats to bools and floats", to(torch.bool), with_zeros, EXACT)
    yield case_of("cast floats to floats", to(torch.float32), floats, FLOATS)
    integers = [(whole(n, 3),) for n in (9, 1, 9)]
    rows = to(torch.float32) + to(torch.bool) + to(torch.int32)
    yield case_of("cast integers", rows, integers, EXACT)
    bools = [(x > 0,) for (x,) in integers]
    yield case_of("cast bools", to(torch.float32) + to(torch.int64), bools, EXACT)


def choices() -> Iterator[Case]:
    rows = [Row("aten.where.self", lambda c, a, b: [c, a, b], torch.where)]
    shapes = [((6, 1, 5), (3, 1), ()), ((2, 1, 5), (4, 1), ()), ((6, 1, 5), (3, 1), ())]
    calls = [(randn(*c) > 0, randn(*a), randn(*b)) for c, a, b in shapes]
    yield case_of("where", rows, calls, FLOATS)
    calls = [(randn(*c) > 0, whole(*a), whole(*b)) for c, a, b in shapes]
    yield case_of("where, integers", rows, calls, EXACT)
    masked = torch.full((4, 4), -torch.inf)
    calls = [(torch.ones(4, 4).tril().bool(), randn(4, 4), masked)]
    yield case_of("where, minus infinity", rows, calls, FLOATS)


def large_grid() -> Iterator[Case]:
    """More than 65,535 workgroups of 64; made and cut on the GPU, so that little crosses over."""
    count, tail = 65_535 * 64 + 77, 100
    writer = ProgramWriter()
    shift = writer.input("shift", (1,), I64)
    numbers = writer.tensor((count,), I64)
    writer.op("aten.arange.start_step", 0, count, 1, None, None, None, None, numbers)
    moved = writer.tensor((count,), I64)
    writer.op("aten.add.Tensor", numbers, shift, 1, moved)
    floats = writer.tensor((count,), F32)
    writer.op("aten._to_copy.default", moved, *[None] * 6, floats)
    flipped = writer.tensor((count,), F32)
    writer.op("aten.flip.default", floats, [0], flipped)
    head, end = writer.tensor((tail,), F32), writer.tensor((tail,), F32)
    writer.op("aten.slice_copy.Tensor", flipped, 0, 0, tail, 1, head)
    writer.op("aten.slice_copy.Tensor", flipped, 0, count - tail, 2**63 - 1, 1, end)
    writer.output(head, end)
    case = Case("binary, unary and copies past 65,535 workgroups", writer, EXACT)
    for by in (3, 4):
        expected = (torch.arange(count) + by).float().flip(0)
        case.call([torch.tensor([by])], [expected[:tail], expected[-tail:]])
    yield case
