"""Rotary embeddings: both pairings, partial rotation, tables longer than the call."""

from collections.abc import Iterator

import torch

from py_runtime.base.dtypes import F32, I64
from py_runtime.program.writer import ProgramWriter, Ref
from tests.golden import ROPE, Case, Tolerance

ROPE_EXACTLY = Tolerance(ROPE.absolute, 1e-6)  # what the kernels reach


def turned_neighbours(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotate pairs (2i, 2i + 1) of x [..., S, H, D] by tables [S, D/2]."""
    even, odd = x.double()[..., 0::2], x.double()[..., 1::2]
    cos, sin = cos.double()[:, None], sin.double()[:, None]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


def turned_halves(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotate pairs (i, i + R/2) of x [..., S, H, D] by tables [S, R]; the rest stays as it is."""
    rotated = cos.shape[-1]
    turning, rest = x.double()[..., :rotated], x.double()[..., rotated:]
    first, second = turning.chunk(2, -1)
    swapped = torch.cat((-second, first), -1)
    turned = turning * cos.double()[:, None] + swapped * sin.double()[:, None]
    return torch.cat((turned, rest), -1)


def tables(rows: int, columns: int, generator: torch.Generator) -> list[torch.Tensor]:
    """Make tables without angles: every column is its own, so that a wrong one shows."""
    return [torch.randn(rows, columns, generator=generator) for _ in range(2)]


def neighbour_cases() -> Iterator[Case]:
    for batch, heads, kv_heads, width in (((1,), 9, 3, 64), ((2,), 4, 4, 6), ((), 1, 5, 2)):
        for live_tables in (True, False):
            generator = torch.Generator().manual_seed(width)
            writer = ProgramWriter()
            axis = len(batch)
            xq = writer.input("xq", (*batch, 33, heads, width), F32, dynamic=(axis,))
            xk = writer.input("xk", (*batch, 33, kv_heads, width), F32, dynamic=(axis,))
            cos, sin = tables(40, width // 2, generator)
            if live_tables:
                dims = (33, width // 2)
                freqs = [writer.input(name, dims, F32, dynamic=(0,)) for name in ("cos", "sin")]
            else:
                freqs = [writer.constant("cos", cos.numpy()), writer.constant("sin", sin.numpy())]
            xq_out = writer.tensor((*batch, 33, heads, width), F32)
            xk_out = writer.tensor((*batch, 33, kv_heads, width), F32)
            writer.op("et_vk.apply_rotary_emb.default", xq, xk, *freqs, [xq_out, xk_out])
            writer.output(xq_out, xk_out)
            kind = "live tables" if live_tables else "a prefix of tables"
            name = f"apply_rotary_emb {list(batch)} {heads}/{kv_heads} heads of {width}, {kind}"
            case = Case(name, writer, ROPE_EXACTLY)
            for tokens in (33, 5, 1, 32, 33):
                if live_tables:
                    cos, sin = tables(tokens, width // 2, generator)
                q = torch.randn(*batch, tokens, heads, width, generator=generator)
                k = torch.randn(*batch, tokens, kv_heads, width, generator=generator)
                expected = [turned_neighbours(x, cos[:tokens], sin[:tokens]) for x in (q, k)]
                case.call([q, k, *([cos, sin] if live_tables else [])], expected)
            yield case


def halves_cases() -> Iterator[Case]:
    for heads, kv_heads, width, rotated, start in (
        (9, 3, 64, 64, "symint"),
        (4, 4, 16, 8, "select"),
        (2, 1, 10, 6, "symint"),
        (3, 3, 8, 8, 5),
    ):
        generator = torch.Generator().manual_seed(width)
        writer = ProgramWriter()
        xq = writer.input("xq", (1, 20, heads, width), F32, dynamic=(1,))
        xk = writer.input("xk", (1, 20, kv_heads, width), F32, dynamic=(1,))
        cos, sin = tables(48, rotated, generator)
        freqs = [writer.constant("cos", cos.numpy()), writer.constant("sin", sin.numpy())]
        start_pos: str | int | Ref = start
        if start == "symint":
            start_pos = writer.symint_input("start_pos")
        elif start == "select":
            positions = writer.input("positions", (1,), I64)
            start_pos = writer.symint("start_pos")
            writer.op("et_vk.select_as_symint.default", positions, 0, 0, start_pos)
        xq_out = writer.tensor((1, 20, heads, width), F32)
        xk_out = writer.tensor((1, 20, kv_heads, width), F32)
        outs = [xq_out, xk_out]
        writer.op("et_vk.apply_rotary_emb_hf.default", xq, xk, *freqs, start_pos, outs)
        writer.output(xk_out, xq_out)
        name = f"apply_rotary_emb_hf {heads}/{kv_heads} heads of {width}, {rotated} turn, {start}"
        case = Case(name, writer, ROPE_EXACTLY)
        for tokens, position in ((20, 0), (7, 20), (1, 27), (1, 47), (20, 28), (20, 0)):
            at = start if isinstance(start, int) else position
            q = torch.randn(1, tokens, heads, width, generator=generator)
            k = torch.randn(1, tokens, kv_heads, width, generator=generator)
            rows = slice(at, at + tokens)
            expected = [turned_halves(x, cos[rows], sin[rows]) for x in (k, q)]
            given = {"symint": [position], "select": [torch.tensor([position])]}
            case.call([q, k, *given.get(str(start), [])], expected)
        yield case


def interleaved_cases() -> Iterator[Case]:
    for lead, width in (((2,), 64), ((1,), 6), ((), 2), ((2, 3), 4)):
        generator = torch.Generator().manual_seed(width)
        writer = ProgramWriter()
        x = writer.input("x", (*lead, 33, width), F32, dynamic=(len(lead),))
        freqs_data = torch.randn(40, width, generator=generator)
        freqs = writer.constant("freqs", freqs_data.numpy())
        out = writer.tensor((*lead, 33, width), F32)
        writer.op("et_vk.apply_rotary_emb_interleaved.default", x, freqs, out)
        writer.output(out)
        case = Case(f"apply_rotary_emb_interleaved {[*lead, 33, width]}", writer, ROPE_EXACTLY)
        for tokens in (33, 3, 1, 33):
            data = torch.randn(*lead, tokens, width, generator=generator)
            cos, sin = freqs_data[:tokens, 0::2], freqs_data[:tokens, 1::2]
            expected = turned_neighbours(data[..., None, :], cos, sin)[..., 0, :]
            case.call([data], [expected])
        yield case


def rotary_then_attention() -> Case:
    """Do what a decoder does: q and k are computed, and one position drives both ops."""
    generator = torch.Generator().manual_seed(64)
    writer = ProgramWriter()
    q = writer.input("q", (1, 48, 4, 8), F32, dynamic=(1,))
    k = writer.input("k", (1, 48, 2, 8), F32, dynamic=(1,))
    start_pos = writer.symint_input("start_pos")
    cos, sin = tables(64, 8, generator)
    freqs = [writer.constant("cos", cos.numpy()), writer.constant("sin", sin.numpy())]
    turned = [writer.tensor((1, 48, heads, 8), F32) for heads in (4, 2)]
    writer.op("et_vk.apply_rotary_emb_hf.default", q, k, *freqs, start_pos, turned)
    caches = [writer.state(name, (1, 64, 2, 8), F32) for name in ("k_cache", "v_cache")]
    out = writer.tensor((1, 48, 4, 8), F32)
    rest = (1, None, 0, True, None, out)
    writer.op("sdpa_with_kv_cache.default", *turned, k, *caches, start_pos, *rest)
    writer.output(out)
    case = Case("apply_rotary_emb_hf before sdpa_with_kv_cache", writer, ROPE_EXACTLY)
    keys, values = (torch.zeros(1, 64, 2, 8).double() for _ in range(2))
    for tokens, position in ((48, 0), (1, 48), (1, 63), (16, 48), (48, 0), (1, 48)):
        new_q = torch.randn(1, tokens, 4, 8, generator=generator)
        new_k = torch.randn(1, tokens, 2, 8, generator=generator)
        rows = slice(position, position + tokens)
        keys[:, rows] = turned_halves(new_k, cos[rows], sin[rows])
        values[:, rows] = new_k
        expected = torch.nn.functional.scaled_dot_product_attention(
            turned_halves(new_q, cos[rows], sin[rows]).transpose(1, 2),
            *(cache[:, : rows.stop].transpose(1, 2) for cache in (keys, values)),
            attn_mask=torch.ones(tokens, rows.stop, dtype=torch.bool).tril(position),
            enable_gqa=True,
        )
        case.call([new_q, new_k, position], [expected.transpose(1, 2)])
    return case


def cases() -> Iterator[Case]:
    yield from neighbour_cases()
    yield from halves_cases()
    yield from interleaved_cases()
    yield rotary_then_attention()
