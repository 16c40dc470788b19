"""Each pass fires on what it is for, leaves near-misses alone, and changes no result."""

from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.export import Dim

from export.errors import UnsupportedOpsError
from export.lower import lower_graph
from export.module import trace
from export.module_graph import ModuleGraph
from export.passes import PASSES, Pass
from export.passes.attention import attention
from export.passes.fold_constants import fold_constants
from export.passes.fuse_cached_attention import fuse_cached_attention
from export.passes.fuse_rms_norm import fuse_rms_norm
from export.passes.fuse_rope import fuse_rope
from export.passes.index_writes import index_writes
from export.passes.share_repeats import share_repeats
from export.passes.simplify import simplify
from export.support import torch_name
from tests.export.ordinary_modules import Function
from tests.export.plain_llama import CONTEXT, Llama, rotate_half, rotate_pairs
from tests.golden import ATTENTION, Case, check
from tests.runners import NativeRunner

pytestmark = [pytest.mark.torch, pytest.mark.thorough]

LENGTH = Dim("S", min=1, max=24)
X = torch.randn(2, 24, 32)


def graph_of(module: nn.Module, inputs: tuple[Tensor, ...], dynamic: Any) -> ModuleGraph:
    return ModuleGraph(trace(module, inputs, dynamic))


def graph_of_function(function: Callable[..., Any], *inputs: Tensor) -> ModuleGraph:
    """Return the graph of a plain function of x [2, S, 32], or of such inputs."""
    given = inputs or (X,)
    return graph_of(Function(function), given, tuple({1: LENGTH} for _ in given))


def ops(graph: ModuleGraph, *passes: Pass) -> Counter[str]:
    """Count how often each op is called after these passes."""
    for each in passes:
        each(graph)
    return Counter(torch_name(node) for node in graph.calls())


# The result is the same without it -------------------------------------------------------------


@pytest.mark.parametrize(
    ("left_out", "style"),
    [
        (simplify, "pairs"),
        (share_repeats, "halves"),
        (fold_constants, "heads first"),
        (index_writes, "heads first"),
        (fuse_rms_norm, "pairs"),
        (fuse_rope, "halves"),
        (fuse_rope, "pairs"),
        (fuse_cached_attention, "halves"),
        (fuse_cached_attention, "heads first"),
    ],
    ids=lambda each: getattr(each, "__name__", each),
)
def test_a_pass_left_out_changes_no_result(
    left_out: Pass, style: str, native: NativeRunner
) -> None:
    torch.manual_seed(1)
    module = Llama(style, layers=1).eval()
    inputs = torch.randint(97, (1, 24)), torch.tensor([0])
    graph = graph_of(deepcopy(module), inputs, ({1: LENGTH}, None))
    for each in PASSES:
        if each is not left_out:
            each(graph)
    case, oracle = Case(left_out.__name__, lower_graph(graph, "graph"), ATTENTION), module.double()
    for length, position in ((24, 0), (1, 24), (3, 25), (7, 0), (1, 7)):
        inputs = torch.randint(97, (1, length)), torch.tensor([position])
        with torch.no_grad():
            case.call(inputs, [oracle(*inputs)])
    check(case, native)


@pytest.mark.parametrize("style", Llama.STYLES)
def test_a_plain_llama_becomes_the_engines_ops(style: str) -> None:
    inputs = torch.zeros(1, 24, dtype=torch.int64), torch.tensor([0])
    counts = ops(graph_of(Llama(style), inputs, ({1: LENGTH}, None)), *PASSES)
    rope = "apply_rotary_emb" if style == "pairs" else "apply_rotary_emb_hf"
    assert counts[f"inpage.{rope}.default"] == 2
    assert counts["inpage.sdpa_with_kv_cache.default"] == 2
    assert counts["inpage.rms_norm.default"] == 5
    assert counts["aten.linear.default"] == 15
    # gate and residuals; one slice of each table where rope over pairs takes the rows themselves
    rest = {"aten.mul.Tensor": 2, "aten.add.Tensor": 4, "aten.slice.Tensor": 2 * (style == "pairs")}
    for name in ("mul.Tensor", "add.Tensor", "cat.default", "neg.default", "permute.default"):
        assert counts[f"aten.{name}"] == rest.get(f"aten.{name}", 0), name
    assert counts["aten.slice.Tensor"] == rest["aten.slice.Tensor"]


# simplify --------------------------------------------------------------------------------------


def test_simplify_removes_what_changes_nothing() -> None:
    def idle(x: Tensor) -> Tensor:
        y = F.dropout(x, 0.5, False).float().contiguous().clone() * 1 + 0
        y = y.view(2, -1, 4, 8).flatten(2).unsqueeze(0).squeeze(0)
        return y.transpose(0, 1).transpose(0, 1)[:, :].expand(2, -1, -1).relu()

    assert ops(graph_of_function(idle), simplify) == {"aten.relu.default": 1}


def test_simplify_joins_permutes_and_views() -> None:
    counts = ops(graph_of_function(lambda x: x.permute(1, 2, 0).permute(1, 2, 0)), simplify)
    assert counts == {"aten.permute.default": 1}
    counts = ops(graph_of_function(lambda x: x.view(2, -1, 4, 8).view(2, -1, 2, 16)), simplify)
    assert counts["aten.view.default"] == 1


def test_simplify_keeps_what_changes_something() -> None:
    kept = graph_of_function(
        lambda x: (x.int(), x.transpose(0, 1), x[:1].expand(2, -1, -1), x * 1.5, x + 1)
    )
    before = ops(kept)
    assert ops(kept, simplify) == before


# share_repeats ---------------------------------------------------------------------------------


def test_share_repeats_makes_a_call_once() -> None:
    counts = ops(graph_of_function(lambda x: x[..., :8].relu() + x[..., :8].relu()), share_repeats)
    assert counts == {"aten.slice.Tensor": 1, "aten.relu.default": 1, "aten.add.Tensor": 1}


def test_share_repeats_keeps_calls_that_differ_and_random_ones() -> None:
    counts = ops(
        graph_of_function(lambda x: (x[..., :8], x[..., :9], x * 2, x * 2.0)), share_repeats
    )
    assert counts == {"aten.slice.Tensor": 2, "aten.mul.Tensor": 2}
    noise = ops(
        graph_of_function(lambda x: x + torch.rand(32) - torch.rand(32)),
        share_repeats,
        fold_constants,
    )
    assert noise["aten.rand.default"] == 2


# fold_constants --------------------------------------------------------------------------------


class Constants(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 32).half())
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        self.count += 1
        angles = torch.arange(32.0) * 0.1 + 1
        return x @ self.weight.float().t(), x * angles.cos(), x * self.count.exp()


def test_fold_constants_computes_what_is_known() -> None:
    graph = graph_of(Constants(), (X,), ({1: LENGTH},))
    counts = ops(graph, fold_constants)
    assert not {"aten._to_copy.default", "aten.cos.default", "aten.arange.start_step"} & {*counts}
    assert counts["aten.exp.default"] == 1, "the counter changes from call to call"
    folded = [t for node, t in graph.tensors.items() if graph.names[node].startswith("folded.")]
    assert sorted(tuple(tensor.shape) for tensor in folded) == [(32,), (32, 8)]


def test_fold_constants_leaves_live_sizes_and_large_fills() -> None:
    counts = ops(
        graph_of_function(lambda x: x * torch.arange(x.shape[1])[:, None].exp()), fold_constants
    )
    assert counts["aten.arange.start_step"] == 1
    counts = ops(
        graph_of_function(lambda x: (x[:, :1, :1] + torch.ones(128, 128)).sum()), fold_constants
    )
    assert counts["aten.full.default"] == 1


# index_writes ----------------------------------------------------------------------------------


class Rows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(64, 32))

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        start = at[0].item()
        torch._check(start >= 0)
        torch._check(start + x.shape[1] <= 64)
        self.rows[torch.arange(x.shape[1]) + start] = x[0]
        return self.rows.sum()


class RowsAnywhere(Rows):
    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        self.rows[at] = x[0]
        return self.rows.sum()


def test_index_writes_at_a_run_of_positions_become_slices() -> None:
    counts = ops(graph_of(Rows(), (X, torch.tensor([3])), ({1: LENGTH}, None)), index_writes)
    assert (counts["aten.index_put.default"], counts["aten.slice_scatter.default"]) == (0, 1)


def test_index_writes_at_any_positions_stay() -> None:
    graph = graph_of(RowsAnywhere(), (X, torch.arange(24)), ({1: LENGTH}, {0: LENGTH}))
    counts = ops(graph, index_writes)
    assert (counts["aten.index_put.default"], counts["aten.slice_scatter.default"]) == (1, 0)


# fuse_rms_norm ---------------------------------------------------------------------------------

W = torch.rand(32)
RMS_NORMS = {
    "pow": lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * W,
    "product": lambda x: W * (torch.rsqrt((x * x).mean(2, keepdim=True) + 1e-6) * x),
    "division": lambda x: x / torch.sqrt(1e-5 + x.pow(2).mean(-1, keepdim=True)) * W,
    "casts": lambda x: W * (x.float() * x.float().square().mean(-1, True).add(1e-5).rsqrt()).to(x),
    "F.rms_norm": lambda x: F.rms_norm(x, (32,), W, 1e-5),
    "no weight": lambda x: F.rms_norm(x, (32,), eps=1e-5),
    "shifted weight": lambda x: F.rms_norm(x, (32,), eps=1e-5) * (1 + W),
}
NO_RMS_NORMS = {
    "other dim": lambda x: x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-5) * W,
    "other x": lambda x: x * torch.rsqrt(x.sin().pow(2).mean(-1, keepdim=True) + 1e-5) * W,
    "cube": lambda x: x * torch.rsqrt(x.pow(3).mean(-1, keepdim=True) + 1e-5) * W,
    "no eps": lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True)) * W,
    "sum": lambda x: x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + 1e-5) * W,
    "two dims": lambda x: F.rms_norm(x.unflatten(-1, (4, 8)), (4, 8), eps=1e-5),
}


@pytest.mark.parametrize("spelling", RMS_NORMS)
def test_fuse_rms_norm_knows_the_spelling(spelling: str) -> None:
    graph = graph_of_function(RMS_NORMS[spelling])
    counts = ops(graph, simplify, share_repeats, fold_constants, fuse_rms_norm, simplify)
    assert counts == {"inpage.rms_norm.default": 1}


@pytest.mark.parametrize("spelling", NO_RMS_NORMS)
def test_fuse_rms_norm_leaves_others_alone(spelling: str) -> None:
    graph = graph_of_function(NO_RMS_NORMS[spelling])
    before = ops(graph, simplify)
    assert ops(graph, fuse_rms_norm) == before


def test_fuse_rms_norm_keeps_a_value_that_is_used_twice() -> None:
    def twice(x: Tensor) -> tuple[Tensor, Tensor]:
        y = F.rms_norm(x, (32,), eps=1e-5)
        return y, y * W

    counts = ops(graph_of_function(twice), simplify, fuse_rms_norm)
    assert counts == {"inpage.rms_norm.default": 1, "aten.mul.Tensor": 1}


# fuse_rope -------------------------------------------------------------------------------------

HEADS = torch.randn(2, 24, 4, 16)
COS, SIN = torch.randn(24, 16), torch.randn(24, 16)


def halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return x * cos + rotate_half(x) * sin


def split_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1) * sin + cos * x


def mirrored_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((second, -first), -1) * sin


def stepped_pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, odd * cos + even * sin), -1).flatten(-2)


def backward_pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos + odd * sin, odd * cos - even * sin), -1).flatten(-2)


def rotate_both(rotate: Callable[..., Tensor], width: int = 16) -> Callable[..., Any]:
    """Rotate q and k [B, S, H, D], with tables sliced to the live length."""

    def both(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = (table[: q.shape[1], None, :width] for table in (COS, SIN))
        return rotate(q, cos, sin), rotate(k, cos, sin)

    return both


def heads_first(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    cos, sin = COS[: q.shape[1]], SIN[: q.shape[1]]
    return halves(q.transpose(1, 2), cos, sin), halves(k.transpose(1, 2), cos, sin)


def after_one_another(q: Tensor, k: Tensor) -> Tensor:
    cos, sin = COS[: q.shape[1], None], SIN[: q.shape[1], None]
    return halves(halves(q, cos, sin) + k.sum(), cos, sin)


def other_tables(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    cos, sin = COS[: q.shape[1], None], SIN[: q.shape[1], None]
    return halves(q, cos, sin), halves(k, sin, cos)


def rope_counts(function: Callable[..., Any]) -> Counter[str]:
    passes = (simplify, share_repeats, fold_constants, fuse_rope, simplify)
    return ops(graph_of_function(function, HEADS, torch.randn(2, 24, 2, 16)), *passes)


@pytest.mark.parametrize(
    ("function", "op"),
    [
        (rotate_both(halves), "apply_rotary_emb_hf"),
        (rotate_both(split_halves), "apply_rotary_emb_hf"),
        (heads_first, "apply_rotary_emb_hf"),
        (rotate_both(rotate_pairs, 8), "apply_rotary_emb"),
        (rotate_both(stepped_pairs, 8), "apply_rotary_emb"),
    ],
    ids=["halves", "split", "heads first", "pairs", "stepped pairs"],
)
def test_fuse_rope_knows_the_spelling(function: Callable[..., Any], op: str) -> None:
    counts = rope_counts(function)
    assert counts[f"inpage.{op}.default"] == 1
    assert not {"aten.cat.default", "aten.neg.default", "aten.mul.Tensor"} & {*counts}


@pytest.mark.parametrize(
    "function",
    [rotate_both(mirrored_halves), rotate_both(backward_pairs, 8), after_one_another, other_tables],
    ids=["mirrored halves", "backward pairs", "one after another", "other tables"],
)
def test_fuse_rope_leaves_others_alone(function: Callable[..., Any]) -> None:
    counts = rope_counts(function)
    assert not any("rotary" in name for name in counts)
    assert counts["aten.cat.default"] == 2


# fuse_cached_attention -------------------------------------------------------------------------


class Windowed(Llama):
    def mask(self, start: int, end: int) -> Tensor:
        rows, columns = torch.arange(start, end)[:, None], torch.arange(end)[None, :]
        return (columns <= rows) & (columns > rows - CONTEXT + 2)


class OffByOne(Llama):
    def mask(self, start: int, end: int) -> Tensor:
        return torch.arange(end)[None, :] < torch.arange(start, end)[:, None]


class Prefixed(Llama):
    """The first three tokens see each other."""

    def mask(self, start: int, end: int) -> Tensor:
        columns = torch.arange(end)[None, :]
        return (columns <= torch.arange(start, end)[:, None]) | (columns < 3)


class CacheIsRead(Llama):
    def forward(self, tokens: Tensor, pos: Tensor) -> tuple[Tensor, Tensor]:
        return super().forward(tokens, pos), self.blocks[0].attention.k_cache.sum()


@pytest.mark.parametrize("kind", [Windowed, OffByOne, Prefixed, CacheIsRead])
def test_fuse_cached_attention_leaves_others_alone(kind: type[Llama]) -> None:
    inputs = torch.zeros(1, 24, dtype=torch.int64), torch.tensor([0])
    graph = graph_of(kind("halves", layers=1), inputs, ({1: LENGTH}, None))
    counts = ops(graph, simplify, share_repeats, fold_constants, fuse_cached_attention)
    assert counts["inpage.sdpa_with_kv_cache.default"] == 0
    assert counts["aten.scaled_dot_product_attention.default"] == 1


# attention -------------------------------------------------------------------------------------


def test_attention_without_a_cache_is_the_engines() -> None:
    counts = ops(
        graph_of_function(lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True)),
        attention,
    )
    assert counts["inpage.sdpa.default"] == 1
    assert counts["aten.scaled_dot_product_attention.default"] == 0


def test_attention_that_the_engine_lacks_is_named() -> None:
    graph = graph_of_function(lambda x: F.scaled_dot_product_attention(x, x, x[..., :8]))
    assert ops(graph, *PASSES)["aten.scaled_dot_product_attention.default"] == 1
    with pytest.raises(UnsupportedOpsError, match="scaled_dot_product_attention"):
        lower_graph(graph, "graph")
