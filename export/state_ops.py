"""Ops that carry a state from call to call, as torch custom ops; the rest is in torch_ops.py.

At position 0 a state is empty, whatever it holds.
"""

import torch
from torch import Tensor
from torch.library import custom_op


@custom_op("inpage::short_conv", mutates_args=("state",))
def short_conv(x: Tensor, weight: Tensor, state: Tensor, start_pos: int) -> Tensor:
    """Return c · conv(b · u).

    x: [1, S, 3 W] holds b, c and u; weight: [W, taps]; state: [1, taps - 1, W], the last b · u
    before start_pos, where it is not 0.
    """
    b, c, u = x.chunk(3, -1)
    return c * _convolve(b * u, weight, state, start_pos)


@short_conv.register_fake
def _(x: Tensor, weight: Tensor, state: Tensor, start_pos: int) -> Tensor:
    return x.new_empty((*x.shape[:-1], weight.shape[0]))


@custom_op("inpage::conv_silu", mutates_args=("state",))
def conv_silu(x: Tensor, weight: Tensor, state: Tensor, start_pos: int) -> Tensor:
    """x: [1, S, W]; the rest as above. Gives silu(conv(x))."""
    return torch.nn.functional.silu(_convolve(x, weight, state, start_pos))


@conv_silu.register_fake
def _(x: Tensor, weight: Tensor, state: Tensor, start_pos: int) -> Tensor:
    return torch.empty_like(x)


@custom_op("inpage::conv_part_silu", mutates_args=("state",))
def conv_part_silu(
    x: Tensor, weight: Tensor, bias: Tensor | None, first: int, state: Tensor, start_pos: int
) -> Tensor:
    """x: [1, S, columns], of which W are convolved from `first` on. Gives silu(bias + conv(x))."""
    part = x[..., first : first + len(weight)]
    convolved = _convolve(part, weight, state, start_pos)
    return torch.nn.functional.silu(convolved if bias is None else convolved + bias.to(x.dtype))


@conv_part_silu.register_fake
def _(
    x: Tensor, weight: Tensor, bias: Tensor | None, first: int, state: Tensor, start_pos: int
) -> Tensor:
    return x.new_empty((*x.shape[:-1], weight.shape[0]))


def _convolve(z: Tensor, weight: Tensor, state: Tensor, start_pos: int) -> Tensor:
    """Channel by channel over what came before and z: [1, S, W]; the state moves on."""
    before = state if start_pos else torch.zeros_like(state)
    whole = torch.cat((before.to(z.dtype), z), 1).transpose(1, 2)  # [1, W, taps - 1 + S]
    state.copy_(whole[..., whole.shape[-1] - state.shape[1] :].transpose(1, 2))
    weights = weight.to(z.dtype)[:, None]
    return torch.nn.functional.conv1d(whole, weights, groups=len(weight)).transpose(1, 2)


@custom_op("inpage::gated_delta", mutates_args=("state",))
def gated_delta(
    x: Tensor,
    z: Tensor,
    b: Tensor,
    a: Tensor,
    decay: Tensor,
    dt_bias: Tensor,
    norm: Tensor,
    eps: float,
    key_heads: int,
    tiled: bool,
    state: Tensor,
    start_pos: int,
) -> Tensor:
    """Apply the gated delta rule and return [1, S, V].

    x: [1, S, q and k of the key heads, v]; z: [1, S, V]; b, a: [1, S, heads]; decay, dt_bias:
    [heads]; norm: [D]; state: [1, heads, K, D], empty where start_pos is 0.
    """
    heads, keys, width = state.shape[1:]
    q, k, v = x[0].split([key_heads * keys, key_heads * keys, heads * width], -1)
    length = len(x[0])

    def normed(part: Tensor) -> Tensor:  # [S, heads, K]: each value head has its key head's
        of_key_heads = part.view(length, key_heads, keys)
        own = of_key_heads * torch.rsqrt(of_key_heads.pow(2).sum(-1, keepdim=True) + 1e-6)
        shared = heads // key_heads
        return own.repeat(1, shared, 1) if tiled else own.repeat_interleave(shared, 1)

    queries, key_rows, values = normed(q) * keys**-0.5, normed(k), v.view(length, heads, width)
    beta = b[0].sigmoid()
    kept = (decay.to(x.dtype) * torch.nn.functional.softplus(a[0] + dt_bias.to(x.dtype))).exp()
    held = (state[0] if start_pos else torch.zeros_like(state[0])).to(x.dtype)  # [heads, K, D]
    rows = []
    for token in range(length):
        key = key_rows[token][..., None]  # [heads, K, 1]
        held = held * kept[token][:, None, None]
        delta = (values[token] - (held * key).sum(1)) * beta[token][:, None]
        held = held + key * delta[:, None]
        rows.append((held * queries[token][..., None]).sum(1))
    state.copy_(held[None])
    out = torch.stack(rows)  # [S, heads, D]
    out = out * torch.rsqrt(out.pow(2).mean(-1, keepdim=True) + eps) * norm.to(x.dtype)
    return (out.view(1, length, -1) * torch.nn.functional.silu(z)).contiguous()


@gated_delta.register_fake
def _(
    x: Tensor,
    z: Tensor,
    b: Tensor,
    a: Tensor,
    decay: Tensor,
    dt_bias: Tensor,
    norm: Tensor,
    eps: float,
    key_heads: int,
    tiled: bool,
    state: Tensor,
    start_pos: int,
) -> Tensor:
    return torch.empty_like(z)


@custom_op("inpage::selective_scan", mutates_args=("state",))
def selective_scan(
    x: Tensor,
    projected: Tensor,
    decay: Tensor,
    dt_bias: Tensor,
    skip: Tensor,
    groups: int,
    state: Tensor,
    start_pos: int,
) -> Tensor:
    """Apply the selective scan of Mamba-2 and its gate, and return [1, S, V].

    x: [1, S, values of the heads, B and C of the groups]; projected: [1, S, gates [V], ..., time
    steps [heads]]; decay, dt_bias, skip: [heads]; state: [1, heads, N, D], empty where start_pos
    is 0.
    """
    heads, size, width = state.shape[1:]
    length = x.shape[1]
    v, b, c = x[0].split([heads * width, groups * size, groups * size], -1)
    values = v.view(length, heads, width)

    def of_heads(part: Tensor) -> Tensor:  # [S, heads, N]: heads of a group are neighbours
        return part.view(length, groups, size).repeat_interleave(heads // groups, 1)

    writes, asks = of_heads(b), of_heads(c)
    steps = torch.nn.functional.softplus(projected[0, :, -heads:] + dt_bias.to(x.dtype))
    kept = (decay.to(x.dtype) * steps).exp()
    held = (state[0] if start_pos else torch.zeros_like(state[0])).to(x.dtype)  # [heads, N, D]
    rows = []
    for token in range(length):
        new = values[token] * steps[token][:, None]  # [heads, D]
        held = held * kept[token][:, None, None] + writes[token][..., None] * new[:, None]
        rows.append((held * asks[token][..., None]).sum(1))
    state.copy_(held[None])
    out = torch.stack(rows) + skip.to(x.dtype)[:, None] * values  # [S, heads, D]
    gates = torch.nn.functional.silu(projected[..., : heads * width])
    return (out.view(1, length, -1) * gates).contiguous()


@selective_scan.register_fake
def _(
    x: Tensor,
    projected: Tensor,
    decay: Tensor,
    dt_bias: Tensor,
    skip: Tensor,
    groups: int,
    state: Tensor,
    start_pos: int,
) -> Tensor:
    return x.new_empty((*x.shape[:-1], state.shape[1] * state.shape[3]))
