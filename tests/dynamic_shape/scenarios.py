"""The suite, declared as data: A to N, each one torch module exported once with a dynamic S.

A  dynamic rms_norm, a fresh graph per S        B  the same at other widths
C  one graph across S, buffers unchanged        D  static rms_norm: same bytes, no resize work
E  first call below the maximum                 F  rms(rms(x))
G  rms(x) + x                                   H  rms(x) * x
I  linear_q4gsw at many row counts              J  attention with a KV cache, GQA
K  embedding of int64 ids                       L  rope, two outputs, q and k both triggers
M  a whole toy decoder, prefill and 40 steps    N  chunked prefill equals one prefill
C, D and N compare more than numbers: test_suite.py.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.export import Dim, export

from export.lower import lower
from py_runtime.program.writer import ProgramWriter
from tests.dynamic_shape import modules
from tests.golden import (
    ATTENTION,
    ELEMENTWISE,
    QUANTISED,
    RMS_NORM,
    ROPE,
    Case,
    Tolerance,
)

At = tuple[int, int]  # live S, position


@dataclass(frozen=True)
class Scenario:
    name: str
    module: Callable[[], nn.Module]
    make_inputs: Callable[[int, int, torch.Generator], tuple[Tensor, ...]]
    dynamic: tuple[tuple[int, ...], ...]  # for each input, the dims that are S
    max_s: int
    calls: tuple[At, ...]
    tolerance: Tolerance
    fresh_graph_per_call: bool = False

    def export(self) -> tuple[nn.Module, ProgramWriter]:
        """Return the module and its program, both with the same weights every time."""
        torch.manual_seed(len(self.name))
        module = self.module().eval()
        length = Dim("S", min=1, max=self.max_s)
        examples = self.make_inputs(self.max_s, 0, generator(0))
        shapes = tuple(dict.fromkeys(dims, length) or None for dims in self.dynamic)
        with torch.no_grad():
            exported = export(deepcopy(module), examples, dynamic_shapes=shapes)
        return module, lower(exported, self.name)

    def cases(self) -> list[Case]:
        """Return one case with all calls in order, or one per call if each takes a fresh graph."""
        module, writer = self.export()
        oracle = deepcopy(module).double()
        cases = [Case(self.name, writer, self.tolerance)]
        for number, (s, position) in enumerate(self.calls):
            inputs = self.make_inputs(s, position, generator(number))
            with torch.no_grad():
                expected = oracle(*(x.double() if x.is_floating_point() else x for x in inputs))
            if self.fresh_graph_per_call and number:
                cases.append(Case(self.name, writer, self.tolerance))
            cases[-1].call(inputs, expected if isinstance(expected, tuple) else (expected,))
        return cases


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rows_of(width: int) -> Callable[[int, int, torch.Generator], tuple[Tensor, ...]]:
    return lambda s, position, gen: (torch.randn(1, s, width, generator=gen),)


def tokens_below(vocabulary: int) -> Callable[[int, int, torch.Generator], tuple[Tensor, ...]]:
    return lambda s, position, gen: (torch.randint(0, vocabulary, (1, s), generator=gen),)


def attention_inputs(
    heads: int, kv_heads: int, head_dim: int
) -> Callable[[int, int, torch.Generator], tuple[Tensor, ...]]:
    return lambda s, position, gen: (
        torch.randn(1, s, heads, head_dim, generator=gen),
        torch.randn(1, s, kv_heads, head_dim, generator=gen),
        torch.randn(1, s, kv_heads, head_dim, generator=gen),
        torch.tensor([position]),
    )


def rotary_inputs(s: int, position: int, gen: torch.Generator) -> tuple[Tensor, ...]:
    angles = torch.rand(s, 8, generator=gen) * 6
    q, k = torch.randn(1, s, 4, 16, generator=gen), torch.randn(1, s, 2, 16, generator=gen)
    return q, k, angles.cos(), angles.sin()


def rotary_hf_inputs(s: int, position: int, gen: torch.Generator) -> tuple[Tensor, ...]:
    q, k = torch.randn(1, s, 4, 16, generator=gen), torch.randn(1, s, 2, 16, generator=gen)
    return q, k, torch.tensor([position])


def decoder_inputs(s: int, position: int, gen: torch.Generator) -> tuple[Tensor, ...]:
    return torch.randint(0, 97, (1, s), generator=gen), torch.tensor([position])


SHRINK_AND_GROW = tuple((s, 0) for s in (32, 7, 1, 2, 31, 32))
LINEAR_ROWS = tuple((s, 0) for s in (128, 1, 2, 7, 32, 127, 128, 1, 128))
# Prefills, then decode to the very end of the context (64), then from the start again.
ATTENTION_CALLS = (
    (48, 0),
    *((1, position) for position in range(48, 64)),
    (7, 0),
    (1, 7),
    (16, 8),
    (48, 16),
    (1, 0),
    (48, 0),
)
DECODER_CALLS = ((48, 0), (1, 48), (20, 0), *((1, position) for position in range(20, 60)), (48, 0))

SCENARIOS = (
    Scenario(
        "A rms_norm fresh", lambda: modules.RmsNorm(64), rows_of(64), ((1,),), 32,
        SHRINK_AND_GROW, RMS_NORM, fresh_graph_per_call=True,
    ),
    Scenario(
        "B rms_norm width 896", lambda: modules.RmsNorm(896), rows_of(896), ((1,),), 32,
        SHRINK_AND_GROW, RMS_NORM, fresh_graph_per_call=True,
    ),
    Scenario(
        "B rms_norm width 5", lambda: modules.RmsNorm(5), rows_of(5), ((1,),), 32,
        SHRINK_AND_GROW, RMS_NORM, fresh_graph_per_call=True,
    ),
    Scenario(
        "C rms_norm reused", lambda: modules.RmsNorm(64), rows_of(64), ((1,),), 32,
        SHRINK_AND_GROW, RMS_NORM,
    ),
    Scenario(
        "D rms_norm static", lambda: modules.RmsNorm(64), rows_of(64), ((),), 32,
        ((32, 0), (32, 0)), RMS_NORM,
    ),
    Scenario(
        "E first call below max", lambda: modules.RmsNorm(64), rows_of(64), ((1,),), 32,
        ((3, 0), (32, 0)), RMS_NORM,
    ),
    Scenario(
        "F rms of rms", lambda: modules.RmsOfRms(64), rows_of(64), ((1,),), 32,
        SHRINK_AND_GROW, RMS_NORM,
    ),
    Scenario(
        "G rms plus x", lambda: modules.RmsPlusInput(64), rows_of(64), ((1,),), 32,
        SHRINK_AND_GROW, ELEMENTWISE,
    ),
    Scenario(
        "H rms times x", lambda: modules.RmsTimesInput(64), rows_of(64), ((1,),), 32,
        SHRINK_AND_GROW, ELEMENTWISE,
    ),
    Scenario(
        "I linear_q4gsw", lambda: modules.LinearQ4(128, 96), rows_of(128), ((1,),), 128,
        LINEAR_ROWS, QUANTISED,
    ),
    Scenario(
        "I linear_q4gsw odd K, bias", lambda: modules.LinearQ4(100, 37, 100, bias=True),
        rows_of(100), ((1,),), 128, LINEAR_ROWS, QUANTISED,
    ),
    Scenario(
        "J attention GQA 4:1", lambda: modules.Attention(64, 2, 16), attention_inputs(8, 2, 16),
        ((1,), (1,), (1,), ()), 48, ATTENTION_CALLS, ATTENTION,
    ),
    Scenario(
        "J attention head_dim 64", lambda: modules.Attention(64, 3, 64),
        attention_inputs(9, 3, 64), ((1,), (1,), (1,), ()), 48, ATTENTION_CALLS, ATTENTION,
    ),
    Scenario(
        "K embedding", lambda: modules.Embedding(50, 64), tokens_below(50), ((1,),), 32,
        SHRINK_AND_GROW, ELEMENTWISE,
    ),
    Scenario(
        "K embedding_q4gsw", lambda: modules.EmbeddingQ4(50, 64), tokens_below(50), ((1,),), 32,
        SHRINK_AND_GROW, QUANTISED,
    ),
    Scenario(
        "L rope interleaved", modules.Rotary, rotary_inputs, ((1,), (1,), (0,), (0,)), 32,
        SHRINK_AND_GROW, ROPE,
    ),
    Scenario(
        "L rope half-split", lambda: modules.RotaryHf(64, 16), rotary_hf_inputs,
        ((1,), (1,), ()), 48, ATTENTION_CALLS, ROPE,
    ),
    Scenario(
        "L rope half-split, partial", lambda: modules.RotaryHf(64, 8), rotary_hf_inputs,
        ((1,), (1,), ()), 48, ATTENTION_CALLS, ROPE,
    ),
    Scenario(
        "M toy decoder", modules.ToyDecoder, decoder_inputs, ((1,), ()), 48,
        DECODER_CALLS, ATTENTION,
    ),
)  # fmt: skip
