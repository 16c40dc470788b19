"""Attention that sees a window, or scores under a cap.

It runs alone, and over caches already filled, which may be rings.
"""

from collections.abc import Iterator

import torch

from py_runtime.base.dtypes import F32
from py_runtime.program.writer import ProgramWriter, Ref
from tests.golden import Case
from tests.ops.cases_attention import ATTENTION_EXACTLY, as_held


def seen(tokens: int, position: int, window: int | None, together: int = 0) -> torch.Tensor:
    """[tokens, context]: whether a token sees a position; the first ones see each other."""
    at, own = torch.arange(position + tokens)[None], torch.arange(tokens)[:, None] + position
    last = own.clamp(min=position + together - 1)
    return (at <= last) & (at > own - (window or position + tokens + 1))


class Past:
    """The contents of caches before the first call: software is slow to attend over so many."""

    def __init__(
        self,
        writer: ProgramWriter,
        caches: list[Ref],
        dims: tuple[int, ...],  # of a cache: 1, rows, heads, width
        filled: int,
        generator: torch.Generator,
    ) -> None:
        """Declare so many positions; where the rows are fewer, the last ones, as in a ring."""
        self._filled, rows = filled, min(filled, dims[1])
        held = (1, rows, *dims[2:])
        self._data = [torch.randn(held, generator=generator) for _ in caches if filled]
        for cache, _ in zip(caches, self._data, strict=False):
            data = writer.input("past", held, F32, dynamic=(1,))
            writer.op("update_cache.default", data, cache, 0, writer.tensor((1,), F32))

    def fill(self, held: list[torch.Tensor]) -> None:
        """Write it into torch's caches [positions, heads, width]."""
        for cache, data in zip(held, self._data, strict=False):
            rows = data.shape[1]
            for position in range(self._filled - rows, self._filled):
                cache[position] = data[0, position % rows]

    def inputs(self, is_first: bool) -> list[torch.Tensor]:
        """Return a call's inputs: all rows at first, and then one that stands there already."""
        return [data if is_first else data[:, :1] for data in self._data]


def window_case(
    heads: int,
    kv_heads: int,
    width: int,
    context: int,
    calls: list[tuple[int, int]],  # tokens, position
    window: int | None,
    softcap: float | None = None,
    scale: float | None = None,
    rows: int | None = None,  # of the caches; None: one for each position
    has_sinks: bool = False,
    images: list[int] | None = None,  # how many first tokens of each call see each other
    filled: int = 0,  # so many positions are in the caches from the first call on
    held: str = "f32",  # as which type of caches torch's hold what they are given
) -> Case:
    generator = torch.Generator().manual_seed(context)
    sinks = 2 * torch.randn(heads, generator=torch.Generator().manual_seed(heads))
    most = max(tokens for tokens, _ in calls)
    writer = ProgramWriter()
    q_dims, kv_dims = (1, most, heads, width), (1, most, kv_heads, width)
    inputs = [
        writer.input(name, dims, F32, dynamic=(1,))
        for name, dims in (("q", q_dims), ("k", kv_dims), ("v", kv_dims))
    ]
    # Two starts, though the same: calls that see caches alike have rings, which forget.
    starts = [writer.symint_input(name) for name in ("start_pos", "start_again")]
    caches = [
        writer.state(name, (1, rows or context, kv_heads, width), F32) for name in ("kc", "vc")
    ]
    past = Past(writer, caches, (1, rows or context, kv_heads, width), filled, generator)
    learned = writer.constant("sinks", sinks.numpy()) if has_sinks else None
    how: tuple[object, ...] = (scale, window, softcap, learned)
    attention, attend = "inpage.windowed_attention.default", "inpage.attend_window.default"
    if images is not None:
        how = (*how, writer.symint_input("together"))
        attention, attend = "inpage.image_attention.default", "inpage.attend_images.default"
    first, again = writer.tensor(q_dims, F32), writer.tensor(q_dims, F32)
    writer.op(attention, *inputs, *caches, starts[0], *how, first)
    writer.op(attend, inputs[0], *caches, starts[1], *how, again)
    writer.output(first, again)
    # Those that begin so run with the kernels of real GPUs, too, which browsers compile slowly.
    kernels = "sdpa" if context > 256 else "attention"
    name = f"{kernels} of {heads}/{kv_heads} heads of {width}, window {window}, cap {softcap}"
    name += "" if rows is None else f", a ring of {rows}"
    name += ", sinks" if has_sinks else ""
    name += ", images" if images else ""
    case = Case(name, writer, ATTENTION_EXACTLY)
    own_caches = [torch.zeros(context, kv_heads, width).double() for _ in range(2)]
    past.fill(own_caches)
    for at, (tokens, position) in enumerate(calls):
        together = images[at] if images else 0
        q, k, v = (
            torch.randn(1, tokens, count, width, generator=generator)
            for count in (heads, kv_heads, kv_heads)
        )
        q *= 3
        end = position + tokens
        for cache, new in zip(own_caches, (k, v), strict=True):
            cache[position:end] = as_held(new[0], held)
        keys, values = (cache[:end].repeat_interleave(heads // kv_heads, 1) for cache in own_caches)
        scores = torch.einsum("shd,chd->hsc", q[0].double(), keys) * (scale or width**-0.5)
        if softcap is not None:
            scores = softcap * torch.tanh(scores / softcap)
        scores = scores.masked_fill(~seen(tokens, position, window, together), -torch.inf)
        if has_sinks:
            scores = torch.cat((scores, sinks.double()[:, None, None].expand(-1, tokens, 1)), -1)
        weights = scores.softmax(-1)[..., :end]
        out = torch.einsum("hsc,chd->shd", weights, values)[None]
        given = [together] if images else []
        case.call([q, k, v, position, position, *past.inputs(at == 0), *given], [out, out])
    return case


# Prompts, single tokens, and back again; then so far that the context is cut into splits.
SHORT = [(40, 0), (1, 40), (1, 41), (7, 42), (24, 3), (1, 27)]
FAR = 512  # positions that are in the caches by then
LONG = [(1, FAR), (1, FAR + 1), (17, 300), (1, 640)]

# Rings are as long as they must be, and as calls go back they find what they still hold.
AROUND = [(40, 0), (1, 40), (40, 41), (1, 81), (24, 49), (40, 73), (1, 113), (40, 114), (7, 120)]
PROMPTS = [(70, 0), (70, 70), (1, 140), (66, 141), (70, 140)]
FAR_AROUND = [(1, FAR), (1, FAR + 1), (17, 500), (1, 517)]


def cases() -> Iterator[Case]:
    yield window_case(4, 2, 16, 64, SHORT, window=9)
    yield window_case(3, 1, 6, 64, SHORT, window=1)
    yield window_case(2, 2, 8, 64, SHORT, window=None, softcap=0.5)
    yield window_case(2, 1, 8, 700, LONG, window=300, filled=FAR)
    yield window_case(2, 1, 8, 700, LONG, window=33, softcap=2.0, scale=0.3, filled=FAR)
    yield window_case(4, 2, 16, 64, SHORT, window=9, has_sinks=True)
    yield window_case(6, 2, 8, 700, LONG, window=None, has_sinks=True, filled=FAR)
    yield window_case(4, 2, 16, 160, AROUND, window=9, rows=9 + 40 - 1)
    yield window_case(3, 1, 6, 160, AROUND, window=33, rows=80)
    images = [0, 1, 33, 0, 24, 7, 0, 40, 7]
    yield window_case(4, 2, 16, 160, AROUND, window=None, images=images)
    yield window_case(4, 2, 16, 160, AROUND, window=9, rows=9 + 40 - 1, images=images)
    yield window_case(2, 1, 8, 700, FAR_AROUND, window=300, rows=300 + 17 - 1, filled=FAR)
    # So many rows that tiles are large on GPUs.
    yield window_case(32, 16, 8, 300, PROMPTS, window=37, softcap=2.0, rows=106, has_sinks=True)
    yield window_case(32, 16, 8, 300, PROMPTS, window=None, images=[33, 70, 0, 7, 0])
