"""pixel_shuffle with several factors, batches and live sizes."""

from collections.abc import Iterator

import torch
from torch.nn.functional import pixel_shuffle

from tests.golden import EXACT, Case
from tests.ops.op_cases import Row, case_of


def row(factor: int) -> Row:
    return Row(
        "aten.pixel_shuffle.default",
        lambda x: [x, factor],
        lambda x: pixel_shuffle(x, factor),
    )


def cases() -> Iterator[Case]:
    rows = [row(factor) for factor in (1, 2, 3)]
    shapes = [(2, 36, 3, 5), (1, 36, 2, 1), (2, 36, 3, 5)]
    yield case_of("pixel_shuffle", rows, [[torch.randn(shape)] for shape in shapes], EXACT)
    yield case_of("pixel_shuffle of three dims", rows, [[torch.randn(72, 2, 3)]], EXACT)
