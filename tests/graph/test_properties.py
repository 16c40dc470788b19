"""Random live shapes, positions and op chains, against torch."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from export.torch_ops import sdpa_with_kv_cache
from py_runtime.base.dtypes import F32, I64
from py_runtime.graph import Graph
from py_runtime.program.writer import ProgramWriter, Ref
from tests.golden import ATTENTION, ELEMENTWISE, compare
from tests.runners import NativeRunner, wait

pytestmark = pytest.mark.torch

MAX_ROWS, WIDTH = 24, 8
FEW = settings(max_examples=25)


@dataclass
class Chain:
    """A program being written, the value at its end, and what torch does on the way."""

    writer: ProgramWriter
    x: Ref
    length: Ref
    value: Ref
    steps: list[Callable[[Tensor, Tensor], Tensor]]

    def add(self, op: str, *args: object, torch_step: Callable[[Tensor, Tensor], Tensor]) -> None:
        out = self.writer.tensor((1, MAX_ROWS, WIDTH), F32)
        self.writer.op(op, self.value, *args, out)
        self.value = out
        self.steps.append(torch_step)


def unary(name: str, function: Callable[[Tensor], Tensor]) -> Callable[[Chain], None]:
    return lambda chain: chain.add(f"aten.{name}.default", torch_step=lambda y, x: function(y))


def plus_input(chain: Chain) -> None:
    chain.add("aten.add.Tensor", chain.x, 1, torch_step=lambda y, x: y + x)


def times_row(chain: Chain) -> None:
    row = np.linspace(-1, 1, WIDTH, dtype=np.float32)
    constant = chain.writer.constant("row", row)
    chain.add("aten.mul.Tensor", constant, torch_step=lambda y, x: y * torch.from_numpy(row))


def normalise(chain: Chain) -> None:
    weight = chain.writer.constant("ones", np.ones(WIDTH, np.float32))
    chain.add(
        "et_vk.rms_norm.default",
        weight,
        1e-5,
        torch_step=lambda y, x: y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5),
    )


def softmax_of_rows(chain: Chain) -> None:
    chain.add("aten._softmax.default", 1, False, torch_step=lambda y, x: y.softmax(1))


def there_and_back(chain: Chain) -> None:
    """Write views and a permutation that end in the same shape but move every element."""
    writer, half = chain.writer, WIDTH // 2
    pairs = writer.tensor((1, MAX_ROWS, 2, half), F32)
    writer.op("aten.view_copy.default", chain.value, [1, chain.length, 2, half], pairs)
    turned = writer.tensor((1, MAX_ROWS, half, 2), F32)
    writer.op("aten.permute_copy.default", pairs, [0, 1, 3, 2], turned)
    chain.value = turned
    chain.add(
        "aten.view_copy.default",
        [1, chain.length, WIDTH],
        torch_step=lambda y, x: y.view(1, -1, 2, half).transpose(2, 3).reshape(1, -1, WIDTH),
    )


def last_row_everywhere(chain: Chain) -> None:
    row = chain.writer.tensor((1, WIDTH), F32)
    chain.writer.op("aten.select_copy.int", chain.value, 1, -1, row)
    chain.value = row
    chain.add("aten.add.Tensor", chain.x, 1, torch_step=lambda y, x: y[:, -1] + x)


LINKS = (
    unary("sigmoid", torch.sigmoid),
    unary("tanh", torch.tanh),
    unary("neg", torch.neg),
    unary("cos", torch.cos),
    plus_input,
    times_row,
    normalise,
    softmax_of_rows,
    there_and_back,
    last_row_everywhere,
)


@FEW
@given(
    links=st.lists(st.sampled_from(LINKS), min_size=1, max_size=8),
    lengths=st.lists(st.integers(1, MAX_ROWS), min_size=2, max_size=5),
    seed=st.integers(0, 2**16),
)
def test_any_chain_at_any_length_equals_torch(
    native: NativeRunner, links: list[Callable[[Chain], None]], lengths: list[int], seed: int
) -> None:
    writer = ProgramWriter()
    x = writer.input("x", (1, MAX_ROWS, WIDTH), F32, dynamic=(1,))
    length = writer.symint("length")
    writer.op("sym_size.int", x, 1, length)
    chain = Chain(writer, x, length, x, [])
    for link in links:
        link(chain)
    writer.output(chain.value)
    generator = torch.Generator().manual_seed(seed)

    async def run_all() -> None:
        graph = await Graph.load(native.device, writer.program(), writer.constants)
        for rows in lengths:
            data = torch.randn(1, rows, WIDTH, generator=generator)
            wanted = data.double()
            for step in chain.steps:
                wanted = step(wanted, data.double())
            (got,) = await graph.run([data.numpy()])
            compare(f"{rows} rows", got, wanted.numpy(), ELEMENTWISE)
        graph.unload()

    wait(run_all())


HEADS, KV_HEADS, HEAD_DIM, CONTEXT, MAX_CHUNK = 4, 2, 8, 40, 24


@st.composite
def visits(draw: st.DrawFn) -> list[tuple[int, int]]:
    """(S, position) pairs as chats make them: on, back to any earlier position, or from 0."""
    filled, calls = 0, []
    for _ in range(draw(st.integers(1, 8))):
        position = draw(st.sampled_from([filled, 0, draw(st.integers(0, filled))]))
        if position == CONTEXT:
            position = 0
        length = draw(st.integers(1, min(MAX_CHUNK, CONTEXT - position)))
        calls.append((length, position))
        filled = position + length
    return calls


@FEW
@given(calls=visits(), seed=st.integers(0, 2**16))
def test_attention_wherever_a_chat_goes(
    native: NativeRunner, calls: list[tuple[int, int]], seed: int
) -> None:
    writer = ProgramWriter()
    q = writer.input("q", (1, MAX_CHUNK, HEADS, HEAD_DIM), F32, dynamic=(1,))
    k = writer.input("k", (1, MAX_CHUNK, KV_HEADS, HEAD_DIM), F32, dynamic=(1,))
    v = writer.input("v", (1, MAX_CHUNK, KV_HEADS, HEAD_DIM), F32, dynamic=(1,))
    position_input = writer.input("pos", (1,), I64)
    position = writer.symint()
    writer.op("et_vk.select_as_symint.default", position_input, 0, 0, position)
    caches = [writer.state(name, (1, CONTEXT, KV_HEADS, HEAD_DIM), F32) for name in "kv"]
    out = writer.tensor((1, MAX_CHUNK, HEADS, HEAD_DIM), F32)
    options = (1, None, 0.0, True, None)
    writer.op("sdpa_with_kv_cache.default", q, k, v, *caches, position, *options, out)
    writer.output(out)
    generator = torch.Generator().manual_seed(seed)
    torch_caches = [torch.zeros(1, CONTEXT, KV_HEADS, HEAD_DIM).double() for _ in range(2)]

    async def run_all() -> None:
        graph = await Graph.load(native.device, writer.program(), {})
        for length, start in calls:
            heads = (HEADS, KV_HEADS, KV_HEADS)
            qkv = [torch.randn(1, length, h, HEAD_DIM, generator=generator) for h in heads]
            wanted = sdpa_with_kv_cache(
                *(x.double() for x in qkv), *torch_caches, start, 1, None, 0.0, True, None
            )
            (got,) = await graph.run([*(x.numpy() for x in qkv), np.array([start])])
            compare(f"{length} at {start}", got, wanted.numpy(), ATTENTION)
        graph.unload()

    wait(run_all())
