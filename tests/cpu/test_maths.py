"""The functions of shaders/cpu/maths.h against float64, for numbers of every size."""

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest

from py_runtime.base.dtypes import F32
from py_runtime.program.json_format import dump_program
from py_runtime.program.writer import ProgramWriter
from tests.runners import CpuRunner

COUNT = 20_000
SPECIAL = [0.0, 1e-45, 1e-38, 1.0, 1.5, 2.0, 3.0, 88.7, 88.8, 104.0, 1025.0, 3.4e38, np.inf, np.nan]
EDGES = np.array([*SPECIAL, *(-number for number in SPECIAL)], np.float32)

Function = Callable[..., np.ndarray]


def sigmoid(x: np.ndarray) -> np.ndarray:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


def gelu(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * np.vectorize(math.erfc)(x / -math.sqrt(2))


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    return x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


# Op and what it takes beside x; the function; the units in the last place that it may be off; and
# the smallest number whose units count, below which it is the absolute difference that does.
FUNCTIONS: dict[str, tuple[list[object], Function, float, float]] = {
    "aten.exp.default": ([], np.exp, 1.5, 0.0),
    "aten.sigmoid.default": ([], sigmoid, 2.5, 0.0),
    "aten.tanh.default": ([], np.tanh, 1.5, 0.0),
    "aten.silu.default": ([], lambda x: x * sigmoid(x), 3.0, 1e-35),
    "aten.gelu.default": (["none"], gelu, 7.0, 1e-35),
    "aten.gelu.default tanh": (["tanh"], gelu_tanh, 8.0, 0.1),
    "aten.log.default": ([], np.log, 0.501, 0.0),
    "aten.sqrt.default": ([], np.sqrt, 0.501, 0.0),
    "aten.rsqrt.default": ([], lambda x: 1 / np.sqrt(x), 1.5, 0.0),
    "aten.sin.default": ([], np.sin, 0.501, 0.0),
    "aten.cos.default": ([], np.cos, 0.501, 0.0),
    "aten.round.default": ([], np.round, 0.0, 0.0),
}


@cache
def numbers() -> np.ndarray:
    """Return f32 of all sizes, of middling ones, and those where functions change their ways."""
    random = np.random.default_rng(7)
    any_bits = random.integers(0, 2**32, COUNT, np.uint32).view(np.float32)
    middling = random.uniform(-110, 110, COUNT).astype(np.float32)
    near = random.uniform(-3, 3, COUNT).astype(np.float32)
    return np.concatenate([EDGES, any_bits, middling, near])


def computed(
    cpu: CpuRunner, op: str, inputs: Sequence[np.ndarray], more: list[object]
) -> np.ndarray:
    writer = ProgramWriter()
    refs = [writer.input(f"x{place}", x.shape, F32) for place, x in enumerate(inputs)]
    out = writer.tensor(inputs[0].shape, F32)
    writer.op(op, *refs, *more, out)
    writer.output(out)
    ((found,),) = cpu.run(
        "tests.in_runtime",
        "run_graph",
        program=dump_program(writer.program()),
        constants={},
        calls=[list(inputs)],
    )
    return np.asarray(found)


def units_off(got: np.ndarray, exact: np.ndarray, smallest: float) -> np.ndarray:
    """Return by how many units in the last place each is off; infinity where only one is finite."""
    rounded = exact.astype(np.float32)
    unit = np.spacing(np.maximum(np.abs(rounded), np.float32(smallest))).astype(np.float64)
    off = np.abs(got.astype(np.float64) - exact) / unit
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    return np.where(same, 0.0, np.where(np.isfinite(got) & np.isfinite(rounded), off, np.inf))


def check(
    got: np.ndarray, exact: np.ndarray, units: float, smallest: float, *x: np.ndarray
) -> None:
    off = units_off(got, exact, smallest)
    worst = int(off.argmax())
    given = ", ".join(repr(float(one[worst])) for one in x)
    assert off[worst] <= units, f"of {given}: {got[worst]!r}, exactly {exact[worst]!r}"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_one_number(name: str, cpu: CpuRunner) -> None:
    more, function, units, smallest = FUNCTIONS[name]
    x = numbers()
    got = computed(cpu, name.split()[0], [x], more)
    check(got, function(x.astype(np.float64)), units, smallest, x)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_powers(cpu: CpuRunner) -> None:
    random = np.random.default_rng(8)
    edges = np.repeat(EDGES, len(EDGES)), np.tile(EDGES, len(EDGES))
    base = np.concatenate([edges[0], numbers(), np.abs(numbers()), random.uniform(0.9, 1.1, COUNT)])
    exponent = np.concatenate(
        [
            edges[1],
            random.permutation(numbers()),
            np.round(numbers()),
            random.uniform(-800, 800, COUNT),
        ]
    )
    base, exponent = base.astype(np.float32), exponent.astype(np.float32)
    got = computed(cpu, "aten.pow.Tensor_Tensor", [base, exponent], [])
    exact = np.power(base.astype(np.float64), exponent.astype(np.float64))
    check(got, exact, 0.501, 0.0, base, exponent)
