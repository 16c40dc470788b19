"""Attention over a KV cache, cache updates, and plain attention with masks."""

from collections.abc import Iterator, Sequence

import torch

from py_runtime.base.dtypes import BOOL, CACHED_BLOCK, F32, I64
from py_runtime.program.writer import ProgramWriter, Ref
from tests.golden import ATTENTION, EXACT, Case, Tolerance

ATTENTION_EXACTLY = Tolerance(ATTENTION.absolute, 2e-6)  # what the kernels reach


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: torch.Tensor, scale: float | None
) -> torch.Tensor:
    """Attend with q [B,H,S,D], k and v [B,Hkv,C,D]; a row that sees nothing is zero.

    The bias is added to the scores.
    """
    group = q.shape[1] // k.shape[1]
    k, v = (x.double().repeat_interleave(group, 1) for x in (k, v))
    scores = q.double() @ k.mT * (scale or q.shape[-1] ** -0.5) + bias
    return torch.softmax(scores, -1).nan_to_num(0.0) @ v


def as_held(rows: torch.Tensor, kind: str) -> torch.Tensor:
    """Return rows [..., heads, width] as a cache of this type gives them back."""
    if kind == "f32":
        return rows
    if kind == "f16":
        return rows.half().float()
    blocks = rows.reshape(*rows.shape[:-2], -1, CACHED_BLOCK)
    least, top = blocks.amin(-1, keepdim=True), blocks.amax(-1, keepdim=True)
    if kind == "q8":  # the range is held, in 1023 steps
        most, step = 1023, (top - least).half().float() / 1023
    else:
        most, step = 15, ((top - least) / 15).half().float()
    least = least.half().float()
    held = torch.round((blocks - least) / step.clamp(min=1e-33)).clamp(0, most) * step + least
    return held.reshape(rows.shape)


class CachedAttention:
    """A graph with one sdpa_with_kv_cache, and torch's idea of its caches."""

    def __init__(
        self,
        name: str,
        heads: int,
        kv_heads: int,
        width: int,
        tokens: int,
        context: int,
        start: str | int = "symint",  # where start_pos comes from; an int is a constant
        batch: tuple[int, ...] = (1,),
        scale: float | None = None,
        is_causal: bool | None = True,
        q_is_computed: bool = False,
        sharpness: float = 1.0,
        held: str = "f32",  # as which type of caches torch's hold what they are given
    ) -> None:
        self.start, self.batch, self.scale, self.sharpness = start, batch, scale, sharpness
        self.held = held
        self.q_heads, self.kv_heads, self.width = heads, kv_heads, width
        self.generator = torch.Generator().manual_seed(heads * 1000 + width)
        self.q_is_computed = q_is_computed
        self.writer = writer = ProgramWriter()
        axis = len(batch)
        q_dims, kv_dims = (*batch, tokens, heads, width), (*batch, tokens, kv_heads, width)
        q = writer.input("q", q_dims, F32, dynamic=(axis,))
        k = writer.input("k", kv_dims, F32, dynamic=(axis,))
        v = writer.input("v", kv_dims, F32, dynamic=(axis,))
        self.caches = [torch.zeros(*batch, context, kv_heads, width).double() for _ in range(2)]
        k_cache = writer.state("k_cache", (*batch, context, kv_heads, width), F32)
        v_cache = writer.state("v_cache", (*batch, context, kv_heads, width), F32)
        if q_is_computed:
            normal = writer.tensor(q_dims, F32)
            ones = writer.constant("ones", torch.ones(width).numpy())
            writer.op("et_vk.rms_norm.default", q, ones, 0.0, normal)
            q = normal
        out = writer.tensor(q_dims, F32)
        writer.op(
            "sdpa_with_kv_cache.default",
            *(q, k, v, k_cache, v_cache, self._start_pos()),
            *(1, None, 0, is_causal, scale, out),  # seq_len 1 is what exporters write
        )
        writer.output(out)
        self.case = Case(name, writer, ATTENTION_EXACTLY)

    def _start_pos(self) -> Ref | int:
        if isinstance(self.start, int):
            return self.start
        if self.start == "symint":
            return self.writer.symint_input("start_pos")
        positions = self.writer.input("positions", (1,), I64)
        start_pos = self.writer.symint("start_pos")
        self.writer.op("et_vk.select_as_symint.default", positions, 0, 0, start_pos)
        return start_pos

    def call(self, tokens: int, position: int, poison: float = 0.0) -> None:
        """Poison is added to the values: NaN spoils whatever takes them in."""
        q, k, v = (
            torch.randn(*self.batch, tokens, heads, self.width, generator=self.generator)
            for heads in (self.q_heads, self.kv_heads, self.kv_heads)
        )
        q *= self.sharpness
        v += poison
        inputs: list[object] = [q, k, v]
        if self.start == "symint":
            inputs.append(position)
        elif self.start == "select":
            inputs.append(torch.tensor([position]))
        self.case.call(inputs, [self._expected(q, k, v, position)])

    def _expected(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, position: int
    ) -> torch.Tensor:
        tokens = q.shape[-3]
        for cache, new in zip(self.caches, (k, v), strict=True):
            cache[..., position : position + tokens, :, :] = as_held(new, self.held)
        q = q.double()
        if self.q_is_computed:
            q = q * torch.rsqrt(q.pow(2).mean(-1, keepdim=True))
        sees = torch.ones(tokens, position + tokens).tril(position)
        seen = [cache[..., : position + tokens, :, :].transpose(-3, -2) for cache in self.caches]
        shape = q.shape
        q, k, v = (x.reshape(-1, *x.shape[-3:]) for x in (q.transpose(-3, -2), *seen))
        out = attention(q, k, v, sees.log().double(), self.scale)
        return out.transpose(-3, -2).reshape(shape)


def prefills_and_decodes(graph: CachedAttention, calls: Sequence[tuple[int, int]]) -> Case:
    """Each call is (tokens, position), in order, on one graph."""
    for tokens, position in calls:
        graph.call(tokens, position)
    return graph.case


def cached_cases() -> Iterator[Case]:
    for heads, kv_heads, width in ((4, 4, 8), (9, 3, 64), (8, 2, 16), (8, 1, 128), (4, 2, 6)):
        name = f"sdpa_with_kv_cache {heads}/{kv_heads} heads of {width}"
        graph = CachedAttention(name, heads, kv_heads, width, tokens=20, context=33)
        to_the_end = [(1, position) for position in range(25, 33)]
        calls = [(20, 0), (5, 20), *to_the_end, (20, 0), (3, 20), (1, 0), (2, 1), (20, 13)]
        yield prefills_and_decodes(graph, calls)
    graph = CachedAttention("sdpa_with_kv_cache many splits", 3, 1, 64, tokens=128, context=1100)
    calls = [(128, 128 * chunk) for chunk in range(8)]
    yield prefills_and_decodes(graph, [*calls, (1, 1024), (75, 1025), (1, 1099), (1, 300)])
    graph = CachedAttention("sdpa_with_kv_cache wide heads", 5, 1, 512, tokens=150, context=330)
    calls = [(150, 0), (150, 150), (1, 300), (7, 301), (1, 329), (1, 40), (3, 41), (1, 255)]
    yield prefills_and_decodes(graph, calls)
    graph = CachedAttention("sdpa_with_kv_cache prompts", 32, 16, 20, tokens=70, context=100)
    yield prefills_and_decodes(graph, [(70, 0), (30, 70), (1, 99), (64, 5), (70, 30)])
    # The third call would not fit with the second's tokens: positions and shapes change together.
    for start in ("symint", "select"):
        graph = CachedAttention(
            f"sdpa_with_kv_cache stale tokens, start_pos by {start}",
            *(6, 2, 16),
            tokens=48,
            context=64,
            start=start,
            q_is_computed=True,
        )
        yield prefills_and_decodes(graph, [(48, 0), (48, 0), (1, 48), (1, 63), (16, 48), (48, 16)])
    for at in (0, 7):
        name = f"sdpa_with_kv_cache start_pos constant {at}"
        graph = CachedAttention(name, 4, 2, 16, tokens=9, context=16, start=at)
        yield prefills_and_decodes(graph, [(9, at), (1, at), (4, at), (9, at)])
    for batch in ((), (3,)):
        name = f"sdpa_with_kv_cache batch {list(batch)}"
        graph = CachedAttention(name, 6, 3, 12, tokens=10, context=40, batch=batch)
        yield prefills_and_decodes(graph, [(10, 0), (7, 10), (1, 17), (1, 39), (10, 30)])
    graph = CachedAttention(
        "sdpa_with_kv_cache sharp scores, own scale",
        *(4, 1, 32),
        tokens=33,
        context=80,
        scale=0.5,
        is_causal=None,
        sharpness=30.0,
    )
    yield prefills_and_decodes(graph, [(33, 0), (33, 33), (1, 66), (5, 67)])
    graph = CachedAttention("sdpa_with_kv_cache after NaN", 4, 2, 16, tokens=40, context=64)
    graph.call(40, 0, poison=torch.nan)
    yield prefills_and_decodes(graph, [(1, 0), (5, 1), (40, 0)])


def two_layers() -> Case:
    """Two attentions in a row share scratch memory, each with caches of its own."""
    generator = torch.Generator().manual_seed(2)
    writer = ProgramWriter()
    x = writer.input("x", (1, 16, 4, 16), F32, dynamic=(1,))
    start_pos = writer.symint_input("start_pos")
    hidden = x
    for layer in range(2):
        caches = [writer.state(f"{kind}_{layer}", (1, 32, 4, 16), F32) for kind in "kv"]
        out = writer.tensor((1, 16, 4, 16), F32)
        rest = (1, None, 0, True, None, out)
        writer.op("sdpa_with_kv_cache.default", hidden, hidden, hidden, *caches, start_pos, *rest)
        hidden = out
    writer.output(hidden)
    case = Case("sdpa_with_kv_cache two layers", writer, ATTENTION_EXACTLY)
    caches_by_layer = [torch.zeros(1, 32, 4, 16).double() for _ in range(2)]
    for tokens, position in ((16, 0), (8, 16), (1, 24), (1, 31), (16, 0)):
        data = torch.randn(1, tokens, 4, 16, generator=generator)
        expected = data.double()
        for cache in caches_by_layer:
            cache[:, position : position + tokens] = expected
            seen = cache[:, : position + tokens].transpose(1, 2)
            sees = torch.ones(tokens, position + tokens).tril(position).log().double()
            expected = attention(expected.transpose(1, 2), seen, seen, sees, None).transpose(1, 2)
        case.call([data, position], [expected])
    return case


def update_cache_cases() -> Iterator[Case]:
    for start, out_dims in (("symint", (1, 24, 2, 5)), (3, (1, 24, 2, 5)), ("symint", (1,))):
        generator = torch.Generator().manual_seed(24)
        writer = ProgramWriter()
        value = writer.input("value", (1, 10, 2, 5), F32, dynamic=(1,))
        cache = writer.state("cache", (1, 24, 2, 5), F32)
        start_pos = writer.symint_input("start_pos") if start == "symint" else start
        out = writer.tensor(out_dims, F32)
        writer.op("update_cache.default", value, cache, start_pos, out)
        writer.output(cache if out_dims == (1,) else out)
        kind = "a dummy" if out_dims == (1,) else "the cache"
        case = Case(f"update_cache start_pos {start}, out is {kind}", writer, EXACT)
        expected = torch.zeros(1, 24, 2, 5)
        for tokens, position in ((10, 0), (4, 10), (1, 14), (9, 15), (10, 3), (1, 23)):
            data = torch.randn(1, tokens, 2, 5, generator=generator)
            at = position if start == "symint" else 3
            expected[:, at : at + tokens] = data
            case.call([data, *([position] if start == "symint" else [])], [expected.clone()])
        yield case
    yield update_past_one_grid_row()


def update_past_one_grid_row() -> Case:
    """More workgroups than one grid dimension has; the last rows come from the last of them."""
    writer = ProgramWriter()
    tokens, size = 33_000, 128  # 66,000 workgroups of 64
    rows = writer.input("rows", (3, 1, size), F32)
    source, target = (writer.state(f"cache {at}", (tokens + at, 1, size), F32) for at in (0, 1))
    filled = writer.tensor((tokens, 1, size), F32)
    writer.op("update_cache.default", rows, source, tokens - 3, filled)
    copied = writer.tensor((tokens + 1, 1, size), F32)
    writer.op("update_cache.default", filled, target, 1, copied)
    end = writer.tensor((5, 1, size), F32)
    writer.op("aten.slice_copy.Tensor", copied, 0, tokens - 4, tokens + 1, 1, end)
    writer.output(end)
    case = Case("update_cache past 65,535 workgroups", writer, EXACT)
    data = torch.arange(3.0 * size).reshape(3, 1, size)
    case.call([data], [torch.cat([torch.zeros(2, 1, size), data])])
    return case


def masked_cases() -> Iterator[Case]:
    shapes: list[tuple[int, ...] | None] = [
        None,
        (1, 1, 0, 0),
        (2, 6, 0, 0),
        (6, 1, 0),
        (2, 1, 1, 0),
    ]
    for mask_dims in shapes:
        for dtype in (F32, BOOL) if mask_dims else (F32,):
            yield masked_case(mask_dims, dtype is BOOL, width=16)
    yield masked_case(None, False, width=10)
    yield masked_case((0, 0), False, width=10)
    # With so many rows, tiles are large on GPUs.
    yield masked_case((2, 16, 0, 0), False, width=36, heads=16, queries=70)
    yield masked_case(None, False, width=256, heads=16, queries=70)


def masked_case(
    mask_dims: tuple[int, ...] | None,
    is_bool: bool,
    width: int,
    heads: int = 6,
    queries: int = 21,
) -> Case:
    """Make a case; the zeros of the last two mask_dims stand for the queries and the keys."""
    keys, kv_heads = 2 * queries - 5, heads // 2
    generator = torch.Generator().manual_seed(37)
    writer = ProgramWriter()
    q = writer.input("q", (2, heads, queries, width), F32, dynamic=(2,))
    k, v = (writer.input(name, (2, kv_heads, keys, width), F32, dynamic=(2,)) for name in "kv")
    mask = None
    if mask_dims:
        rank = len(mask_dims)
        most = with_live(mask_dims, queries, keys)
        dynamic = tuple(axis for axis in (rank - 2, rank - 1) if not mask_dims[axis])
        mask = writer.input("mask", most, BOOL if is_bool else F32, dynamic=dynamic)
    out = writer.tensor((2, heads, queries, width), F32)
    writer.op("et_vk.sdpa.default", q, k, v, mask, None, out)
    writer.output(out)
    kind = f"{'bool' if is_bool else 'float'} mask {list(mask_dims)}" if mask_dims else "no mask"
    case = Case(f"sdpa width {width} {kind}", writer, ATTENTION_EXACTLY)
    for live_queries, live_keys in ((queries, keys), (1, 5), (5, 1), (20, 33), (queries, keys)):
        q, k, v = (
            torch.randn(2, count, size, width, generator=generator)
            for count, size in ((heads, live_queries), (kv_heads, live_keys), (kv_heads, live_keys))
        )
        bias = torch.zeros(())
        if mask_dims:
            dims = with_live(mask_dims, live_queries, live_keys)
            visible = torch.rand(dims, generator=generator) < 0.6
            visible[..., 0] = True
            visible[..., 0, :] = mask_dims[-2] != 0  # where queries differ, the first sees nothing
            added = torch.randn(dims, generator=generator)
            added.masked_fill_(~visible, -torch.inf)
            bias = visible.log() if is_bool else added
        masks = [visible if is_bool else added] if mask_dims else []
        case.call([q, k, v, *masks], [attention(q, k, v, bias.double(), None)])
    return case


def with_live(mask_dims: tuple[int, ...], queries: int, keys: int) -> tuple[int, ...]:
    *lead, rows, columns = mask_dims
    return (*lead, rows or queries, columns or keys)


def window_both_ways(
    window: int, width: int, most: int, is_masked: bool, heads: int = 4, kv_heads: int = 2
) -> Case:
    """See those less than a window away; a mask hides the last ones of the second text."""
    generator = torch.Generator().manual_seed(window)
    writer = ProgramWriter()
    q = writer.input("q", (2, heads, most, width), F32, dynamic=(2,))
    k, v = (writer.input(name, (2, kv_heads, most, width), F32, dynamic=(2,)) for name in "kv")
    mask = writer.input("mask", (2, 1, 1, most), BOOL, dynamic=(3,)) if is_masked else None
    out = writer.tensor((2, heads, most, width), F32)
    writer.op("inpage.window_sdpa.default", q, k, v, mask, None, window, out)
    writer.output(out)
    name = f"sdpa width {width} within {window} of {most}{', masked' if is_masked else ''}"
    case = Case(name, writer, ATTENTION_EXACTLY)
    for tokens in (most, 1, window, most // 2 + 1, most):
        q, k, v = (
            torch.randn(2, count, tokens, width, generator=generator)
            for count in (heads, kv_heads, kv_heads)
        )
        at = torch.arange(tokens)
        seen = ((at[:, None] - at).abs() < window)[None, None]
        visible = torch.ones(2, 1, 1, tokens, dtype=torch.bool)
        visible[1, ..., (tokens + 1) // 2 :] = False
        masks = [visible] if is_masked else []
        bias = (seen & visible if is_masked else seen).log().double()
        case.call([q, k, v, *masks], [attention(q, k, v, bias, None)])
    return case


def lowest_float_mask() -> Case:
    """Hide positions by the lowest float; where it covers them all, they are seen alike."""
    generator = torch.Generator().manual_seed(1)
    writer = ProgramWriter()
    q, k, v = (writer.input(name, (1, 2, 4, 8), F32) for name in "qkv")
    mask = writer.input("mask", (4, 4), F32)
    out = writer.tensor((1, 2, 4, 8), F32)
    writer.op("et_vk.sdpa.default", q, k, v, mask, 0.25, out)
    writer.output(out)
    case = Case("sdpa mask of the lowest float, own scale", writer, ATTENTION_EXACTLY)
    live_q, live_k, live_v = (torch.randn(1, 2, 4, 8, generator=generator) for _ in range(3))
    low = torch.finfo(torch.float32).min
    mask_data = torch.tensor([[0, low, 0, low], [low] * 4, [low, 0, 0, 0], [0.0] * 4])
    expected = attention(live_q, live_k, live_v, mask_data.double(), 0.25)
    expected[:, :, 1] = live_v.double().mean(2)  # in float32 the mask swallows the scores
    case.call([live_q, live_k, live_v, mask_data], [expected])
    return case


def cases() -> Iterator[Case]:
    yield from cached_cases()
    yield two_layers()
    yield from update_cache_cases()
    yield from masked_cases()
    yield lowest_float_mask()
    yield window_both_ways(4, 16, 37, is_masked=True)
    yield window_both_ways(5, 10, 37, is_masked=False)
    yield window_both_ways(65, 64, 300, is_masked=True, heads=2, kv_heads=1)
