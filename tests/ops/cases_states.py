"""Ops that carry a state from call to call: chunks of any length give what one call gives."""

from collections.abc import Iterator, Sequence

import torch
from transformers.models.mamba2.modeling_mamba2 import mamba2_selective_state_update
from transformers.models.qwen3_5.modeling_qwen3_5 import torch_recurrent_gated_delta_rule

from py_runtime.base.dtypes import F32
from py_runtime.program.writer import ProgramWriter
from tests.golden import Case
from tests.ops.op_cases import FLOATS

# (tokens, position): a text in chunks; others that begin anew, up to the longest chunk again.
CALLS = [(40, 0), (1, 40), (1, 41), (2, 42), (7, 44), (1, 0), (2, 1), (1, 3), (40, 4), (40, 0)]
# The same beyond a chunk of a scan, of whole ones and others.
LONG_CALLS = [(150, 0), (1, 150), (2, 151), (129, 153), (1, 0), (70, 1), (128, 0), (64, 128)]
LONG_CALLS += [(150, 0)]


def conv_case(op: str, width: int, taps: int) -> Case:
    gated = op == "short_conv"
    generator = torch.Generator().manual_seed(width)
    weight = torch.randn(width, taps, generator=generator)
    columns = 3 * width if gated else width
    most = max(tokens for tokens, _ in CALLS)
    writer = ProgramWriter()
    x = writer.input("x", (1, most, columns), F32, dynamic=(1,))
    start = writer.symint_input("start_pos")
    state = writer.state("state", (1, taps - 1, width), F32)
    out = writer.tensor((1, most, width), F32)
    stored = writer.constant("weight", weight.numpy())
    writer.op(f"inpage.{op}.default", x, stored, state, start, out)
    writer.output(out)
    case = Case(f"{op} of {width} channels, {taps} taps", writer, FLOATS)
    text = torch.zeros(0, columns)
    for tokens, position in CALLS:
        chunk = torch.randn(1, tokens, columns, generator=generator)
        text = torch.cat((text[:position], chunk[0]))
        whole = text.double()  # computed at once, from the first token
        b, c, u = whole.chunk(3, -1) if gated else (1, 1, whole)
        padded = torch.nn.functional.pad((b * u).T, (taps - 1, 0))  # [width, taps - 1 + tokens]
        convolved = torch.nn.functional.conv1d(padded, weight.double()[:, None], groups=width).T
        result = c * convolved if gated else torch.nn.functional.silu(convolved)
        case.call([chunk, position], [result[None, position:]])
    return case


def part_case(columns: int, first: int, width: int, has_bias: bool) -> Case:
    """Convolve some columns of x."""
    generator = torch.Generator().manual_seed(columns)
    weight = torch.randn(width, 4, generator=generator)
    bias = torch.randn(width, generator=generator)
    most = max(tokens for tokens, _ in CALLS)
    writer = ProgramWriter()
    x = writer.input("x", (1, most, columns), F32, dynamic=(1,))
    start = writer.symint_input("start_pos")
    state = writer.state("state", (1, 3, width), F32)
    out = writer.tensor((1, most, width), F32)
    stored = writer.constant("weight", weight.numpy())
    added = writer.constant("bias", bias.numpy()) if has_bias else None
    writer.op("inpage.conv_part_silu.default", x, stored, added, first, state, start, out)
    writer.output(out)
    case = Case(f"conv_part_silu of {width} of {columns} columns, bias {has_bias}", writer, FLOATS)
    text = torch.zeros(0, columns)
    for tokens, position in CALLS:
        chunk = torch.randn(1, tokens, columns, generator=generator)
        text = torch.cat((text[:position], chunk[0]))
        part = text.double()[:, first : first + width].T
        given = (torch.nn.functional.pad(part, (3, 0)), weight.double()[:, None])
        added_too = bias.double() if has_bias else None
        result = torch.nn.functional.conv1d(*given, added_too, groups=width).T
        case.call([chunk, position], [torch.nn.functional.silu(result)[None, position:]])
    return case


def scan_case(heads: int, head_dim: int, state_dim: int, groups: int) -> Case:
    """Compare with transformers' scan, in one call from the first token on."""
    generator = torch.Generator().manual_seed(heads)

    def random(*dims: int) -> torch.Tensor:
        return torch.randn(dims, generator=generator)

    values, grouped = heads * head_dim, heads * head_dim + 2 * groups * state_dim
    widths = [grouped, values + grouped + heads]
    constants = [-random(heads).exp(), random(heads), random(heads)]
    most = max(tokens for tokens, _ in LONG_CALLS)
    writer = ProgramWriter()
    inputs = [
        writer.input(f"x{place}", (1, most, width), F32, dynamic=(1,))
        for place, width in enumerate(widths)
    ]
    start = writer.symint_input("start_pos")
    stored = [writer.constant(f"c{i}", each.numpy()) for i, each in enumerate(constants)]
    state = writer.state("state", (1, heads, state_dim, head_dim), F32)
    out = writer.tensor((1, most, values), F32)
    writer.op("inpage.selective_scan.default", *inputs, *stored, groups, state, start, out)
    writer.output(out)
    name = f"selective_scan of {heads} heads of {head_dim}, {groups} groups of {state_dim}"
    case = Case(name, writer, FLOATS)
    text = torch.zeros(0, sum(widths))
    for tokens, position in LONG_CALLS:
        chunk = random(tokens, sum(widths))
        text = torch.cat((text[:position], chunk))
        parts = text.double()[None].split(widths, -1)
        result = scanned(
            parts[0], parts[1], [each.double() for each in constants], head_dim, groups
        )
        case.call([*chunk[None].split(widths, -1), position], [result[:, position:]])
    return case


def scanned(
    x: torch.Tensor,
    projected: torch.Tensor,
    constants: Sequence[torch.Tensor],
    head_dim: int,
    groups: int,
) -> torch.Tensor:
    """Compute what a Mamba-2 mixer does between its convolution and its norm, token by token."""
    decay, dt_bias, skip = constants
    heads, tokens = len(decay), x.shape[1]
    values = heads * head_dim
    z, dt = projected[0, :, :values], projected[0, :, -heads:]
    v, b, c = x[0].split([values, *2 * [(x.shape[-1] - values) // 2]], -1)
    held = torch.zeros(1, heads, head_dim, b.shape[-1] // groups, dtype=x.dtype)

    def wide(vector: torch.Tensor) -> torch.Tensor:
        return vector[None, :, None].expand(1, heads, head_dim)

    rows = [
        mamba2_selective_state_update(
            held,
            v[token].view(1, heads, head_dim),
            wide(dt[token]),
            decay[:, None, None].expand(heads, head_dim, held.shape[-1]),
            b[token].view(1, groups, -1),
            c[token].view(1, groups, -1),
            wide(skip)[0],
            wide(dt_bias)[0],
            dt_softplus=True,
        )
        for token in range(tokens)
    ]
    return torch.stack(rows, 1).reshape(1, tokens, values) * torch.nn.functional.silu(z)


def delta_case(
    key_heads: int, value_heads: int, keys: int, values: int, tiled: bool, joined: bool
) -> Case:
    """Compare with transformers' rule, in one call from the first token on."""
    generator = torch.Generator().manual_seed(value_heads)

    def random(*dims: int) -> torch.Tensor:
        return torch.randn(dims, generator=generator)

    columns = 2 * key_heads * keys + value_heads * values
    widths = [columns, value_heads * values, value_heads, value_heads]
    constants = [-random(value_heads).exp(), random(value_heads), random(values)]
    most = max(tokens for tokens, _ in CALLS)
    writer = ProgramWriter()
    if joined:
        widths = [*widths[:2], 2 * value_heads]
    inputs = [
        writer.input(f"x{place}", (1, most, width), F32, dynamic=(1,))
        for place, width in enumerate(widths)
    ]
    start = writer.symint_input("start_pos")
    stored = [writer.constant(f"c{i}", each.numpy()) for i, each in enumerate(constants)]
    state = writer.state("state", (1, value_heads, keys, values), F32)
    out = writer.tensor((1, most, value_heads * values), F32)
    given = [*inputs, inputs[-1]] if joined else inputs
    how = (1e-6, key_heads, tiled, state, start)
    writer.op("inpage.gated_delta.default", *given, *stored, *how, out)
    writer.output(out)
    name = f"gated_delta of {key_heads}/{value_heads} heads of {keys} and {values}"
    case = Case(f"{name}{', tiled' * tiled}{', joined' * joined}", writer, FLOATS)
    text = torch.zeros(0, sum(widths))
    for tokens, position in CALLS:
        chunk = random(tokens, sum(widths))
        text = torch.cat((text[:position], chunk))
        parts = text.double()[None].split(widths, -1)
        if joined:
            parts = (*parts[:2], *parts[2].chunk(2, -1))
        gates, exact = parts[1:], [each.double() for each in constants]
        result = delta_net(parts[0], gates, exact, key_heads, tiled)
        case.call([*chunk[None].split(widths, -1), position], [result[:, position:]])
    return case


def delta_net(
    x: torch.Tensor,
    gates: Sequence[torch.Tensor],
    constants: Sequence[torch.Tensor],
    key_heads: int,
    tiled: bool,
) -> torch.Tensor:
    """Compute what Qwen3_5GatedDeltaNet does between its convolution and its last projection."""
    (z, b, a), (decay, dt_bias, norm) = gates, constants
    heads, width, tokens = len(decay), len(norm), x.shape[1]
    keys = (x.shape[-1] - heads * width) // (2 * key_heads)
    q, k, v = x.split([key_heads * keys, key_heads * keys, heads * width], -1)
    own = [head % key_heads if tiled else head * key_heads // heads for head in range(heads)]
    q, k = (part.view(1, tokens, key_heads, keys)[:, :, own] for part in (q, k))
    g = decay * torch.nn.functional.softplus(a + dt_bias)
    out, _ = torch_recurrent_gated_delta_rule(
        q,
        k,
        v.reshape(1, tokens, heads, width),
        g=g,
        beta=b.sigmoid(),
        use_qk_l2norm_in_kernel=True,
    )
    normed = out * torch.rsqrt(out.pow(2).mean(-1, keepdim=True) + 1e-6) * norm
    return normed.reshape(1, tokens, -1) * torch.nn.functional.silu(z)


def cases() -> Iterator[Case]:
    yield conv_case("short_conv", 24, 3)
    yield conv_case("short_conv", 5, 2)
    yield conv_case("conv_silu", 70, 4)
    yield part_case(100, 30, 42, has_bias=True)
    yield part_case(45, 5, 40, has_bias=False)
    yield scan_case(4, 24, 16, 2)
    yield scan_case(6, 7, 5, 3)
    yield scan_case(1, 8, 130, 1)
    yield delta_case(2, 4, 16, 24, tiled=False, joined=False)
    yield delta_case(2, 4, 5, 7, tiled=True, joined=True)
    yield delta_case(1, 1, 128, 8, tiled=False, joined=False)
