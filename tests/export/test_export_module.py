"""Ordinary modules through export_module, run at live sizes on one graph, against float64 torch."""

from copy import deepcopy
from functools import cache

import pytest
import torch
from torch.export import Dim

from export.module import export_module
from tests.export.ordinary_modules import BY_NAME, MODULES, Ordinary
from tests.golden import Case, Tolerance, check
from tests.runners import NativeRunner, Runner

pytestmark = pytest.mark.torch

CLOSE = Tolerance(2e-3)
# Of these kinds, which take most of the time, `make test` has one each.
MANY_ALIKE = ("llama ", "mlp ", "transformers ")
ONE_EACH = ("llama pairs", "mlp silu()", "transformers Llama")
IN_PAGE = (
    "nn.TransformerEncoderLayer",
    "counter",
    "llama halves",
    "transformers BERT",
    "transformers LFM2",
)


@cache
def case_of(name: str) -> Case:
    """Export the module and have torch answer, once."""
    entry = BY_NAME[name]
    torch.manual_seed(0)
    module = entry.module().eval()
    length = Dim("S", min=1, max=24)
    shapes = tuple(dict.fromkeys(dims, length) or None for dims in entry.dynamic)
    case = Case(name, export_module(deepcopy(module), entry.inputs(entry.sizes[0]), shapes), CLOSE)
    oracle = deepcopy(module).double()
    for size in entry.sizes:
        inputs = entry.inputs(size)
        with torch.no_grad():
            out = oracle(*(x.double() if x.is_floating_point() else x for x in inputs))
        case.call(inputs, [*out] if isinstance(out, tuple | list) else [out])
    return case


def tier(entry: Ordinary) -> list[pytest.MarkDecorator]:
    is_thorough = entry.name.startswith(MANY_ALIKE) and entry.name not in ONE_EACH
    return [pytest.mark.thorough] if is_thorough else []


@pytest.mark.parametrize(
    "entry", [pytest.param(entry, id=entry.name, marks=tier(entry)) for entry in MODULES]
)
def test_equals_torch(entry: Ordinary, native: NativeRunner) -> None:
    check(case_of(entry.name), native)


@pytest.mark.browser
@pytest.mark.thorough
@pytest.mark.parametrize("name", IN_PAGE)
def test_equals_torch_in_the_page(name: str, in_page: Runner) -> None:
    check(case_of(name), in_page)
