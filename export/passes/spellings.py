"""Ops that the engine and torch's decomposition tables lack, spelled with ops the engine has."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten
SPELLINGS: dict[Any, Callable[..., Any]] = {}


def spells(*ops: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enters the function below as what `decompose` puts in place of these ops."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        SPELLINGS.update(dict.fromkeys(ops, function))
        return function

    return add


# Norms -----------------------------------------------------------------------------------------


def normalise(x: Tensor, dims: list[int], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """(x - mean) / sqrt(variance + eps), the mean and 1 / sqrt(variance + eps), over dims."""
    mean = x.mean(dims, keepdim=True)
    centred = x - mean
    scale = torch.rsqrt((centred * centred).mean(dims, keepdim=True) + eps)
    return centred * scale, mean, scale


@spells(aten.native_layer_norm.default)
def layer_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """x: [..., *shape]; weight and bias: shape. Also gives means and 1 / deviations."""
    out, mean, scale = normalise(x, [-1 - at for at in range(len(shape))], eps)
    out = out if weight is None else out * weight
    return out if bias is None else out + bias, mean, scale


@spells(aten.native_group_norm.default)
def group_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    batch: int,
    channels: int,
    inner: int,
    groups: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """x: [batch, channels, ...]; a group is a run of channels."""
    out, mean, scale = normalise(x.reshape(batch, groups, -1), [-1], eps)
    out = out.reshape(x.shape)
    per_channel = [channels] + [1] * (x.dim() - 2)
    out = out if weight is None else out * weight.view(per_channel)
    out = out if bias is None else out + bias.view(per_channel)
    return out, mean.view(batch, groups), scale.view(batch, groups)


@spells(aten._native_batch_norm_legit_no_training.default)
def batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise by one multiplication and one addition, whose operands are constants."""
    scale = torch.rsqrt(variance + eps)
    scale = scale if weight is None else scale * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    per_channel = [-1] + [1] * (x.dim() - 2)
    empty = x.new_empty(0)
    return x * scale.view(per_channel) + shift.view(per_channel), empty, empty


@spells(aten.var.correction)
def var(
    x: Tensor,
    dim: Sequence[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> Tensor:
    """sum((x - mean)²) / (count - correction) over the dims; no dims are all of them."""
    dims = list(dim) if dim else list(range(x.dim()))
    count = math.prod(x.shape[axis] for axis in dims)
    centred = x - x.mean(dims, keepdim=True)
    return (centred * centred).sum(dims, keepdim) / (
        count - (1 if correction is None else correction)
    )


# Reductions ------------------------------------------------------------------------------------


@spells(aten.max.dim)
def max_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the largest along dim, and where the first of them stands."""
    return x.amax(dim, keepdim), x.argmax(dim, keepdim)


@spells(aten.min.dim)
def min_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the least along dim, and where the first of them stands."""
    return x.amin(dim, keepdim), x.argmin(dim, keepdim)


@spells(aten.max.default)
def max_of_all(x: Tensor) -> Tensor:
    """Return the largest element: a tensor of rank 0."""
    return x.amax(list(range(x.dim())))


@spells(aten.min.default)
def min_of_all(x: Tensor) -> Tensor:
    """Return the least element: a tensor of rank 0."""
    return x.amin(list(range(x.dim())))


@spells(aten.linalg_vector_norm.default)
def vector_norm(
    x: Tensor,
    order: float = 2,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Any:
    """(sum |x|^order)^(1 / order) for the orders 1, 2 and infinity."""
    dims = list(dim) if dim else list(range(x.dim()))
    if order == 2:
        return (x * x).sum(dims, keepdim).sqrt()
    if order == 1:
        return x.abs().sum(dims, keepdim)
    return x.abs().amax(dims, keepdim) if order == math.inf else NotImplemented


@spells(aten.any.default, aten.any.dim, aten.any.dims)
def any_of(x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return whether some element is not 0, among all or along dim."""
    return x.ne(0).sum(dim, keepdim).gt(0) if dim is not None else x.ne(0).sum().gt(0)


@spells(aten.cumsum.default)
def cumsum(x: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Sum over a triangle for each place: quadratic in the length, and right."""
    if x.dim() == 0:
        return x.to(dtype or x.dtype)
    x = x.transpose(dim, -1)
    places = torch.arange(x.shape[-1])
    seen = places[None, :] <= places[:, None]  # [n, n]: row t takes what is up to t
    if x.dtype.is_floating_point:
        sums = x @ seen.t().to(x.dtype)
    else:
        sums = (x.unsqueeze(-2) * seen).sum(-1)
    return sums.transpose(dim, -1).to(dtype or sums.dtype)


# Elementwise -----------------------------------------------------------------------------------


@spells(aten.reciprocal.default)
def reciprocal(x: Tensor) -> Tensor:
    """1 / x, as a power."""
    return x.pow(-1.0)


@spells(aten.rsub.Scalar, aten.rsub.Tensor)
def rsub(x: Tensor, other: Any, alpha: float = 1) -> Tensor:
    """Return other - alpha x."""
    return torch.neg(x if alpha == 1 else x * alpha) + other


@spells(aten.pow.Scalar)
def power_of_number(base: float, x: Tensor) -> Tensor:
    """base^x of a fixed base: exp(x log(base)) of a positive one."""
    return torch.exp(x * math.log(base)) if base > 0 else torch.pow(torch.full_like(x, base), x)


@spells(aten.log1p.default)
def log1p(x: Tensor) -> Tensor:
    """Return log(u) x / (u - 1) for u = 1 + x, which restores what rounding lost.

    X where u is 1.
    """
    u = 1 + x
    return torch.where(u == 1, x, torch.log(u) * x / torch.where(u == 1, 1.0, u - 1))


@spells(aten.expm1.default)
def expm1(x: Tensor) -> Tensor:
    """tanh(x / 2) (exp(x) + 1), which loses nothing near 0."""
    return torch.tanh(x * 0.5) * (torch.exp(x) + 1)


@spells(aten.log2.default)
def log2(x: Tensor) -> Tensor:
    """log(x) / log(2)."""
    return torch.log(x) * (1 / math.log(2))


@spells(aten.log10.default)
def log10(x: Tensor) -> Tensor:
    """log(x) / log(10)."""
    return torch.log(x) * (1 / math.log(10))


@spells(aten.exp2.default)
def exp2(x: Tensor) -> Tensor:
    """2^x as exp(x log(2))."""
    return torch.exp(x * math.log(2))


@spells(aten.tan.default)
def tan(x: Tensor) -> Tensor:
    """sin(x) / cos(x)."""
    return torch.sin(x) / torch.cos(x)


@spells(aten.floor.default)
def floor(x: Tensor) -> Tensor:
    """Divide by 1 and round down."""
    return torch.div(x, 1.0, rounding_mode="floor")


@spells(aten.ceil.default)
def ceil(x: Tensor) -> Tensor:
    """-floor(-x)."""
    return -torch.div(-x, 1.0, rounding_mode="floor")


@spells(aten.trunc.default)
def trunc(x: Tensor) -> Tensor:
    """Divide by 1 and round towards 0."""
    return torch.div(x, 1.0, rounding_mode="trunc")


@spells(aten.remainder.Tensor, aten.remainder.Scalar)
def remainder(x: Tensor, other: Any) -> Tensor:
    """Return x - floor(x / other) other, which has the sign of other."""
    return x - torch.div(x, other, rounding_mode="floor") * other


@spells(aten.fmod.Tensor, aten.fmod.Scalar)
def fmod(x: Tensor, other: Any) -> Tensor:
    """Return x - trunc(x / other) other, which has the sign of x."""
    return x - torch.div(x, other, rounding_mode="trunc") * other


@spells(aten.sign.default)
def sign(x: Tensor) -> Tensor:
    """(x > 0) - (x < 0) in the dtype of x."""
    return x.gt(0).to(x.dtype) - x.lt(0).to(x.dtype)


@spells(aten.isnan.default)
def isnan(x: Tensor) -> Tensor:
    """Return where x differs from itself."""
    return x != x


@spells(aten.isinf.default)
def isinf(x: Tensor) -> Tensor:
    """Return where |x| is infinite."""
    return x.abs() == math.inf


@spells(aten.logical_xor.default)
def logical_xor(a: Tensor, b: Tensor) -> Tensor:
    """Return where one of the two is 0, and not both."""
    return a.ne(0) != b.ne(0)


@spells(aten.bitwise_xor.Tensor)
def bitwise_xor(a: Tensor, b: Tensor) -> Any:
    """Return where two bools differ; other dtypes are not spelled."""
    return a != b if a.dtype == b.dtype == torch.bool else NotImplemented


@spells(aten.elu.default)
def elu(x: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    """Return scale x above 0, elsewhere scale alpha (exp(input_scale x) - 1)."""
    return torch.where(x > 0, x * scale, torch.expm1(x * input_scale) * (alpha * scale))


@spells(aten.clamp.Tensor)
def clamp_to_tensors(x: Tensor, least: Tensor | None = None, most: Tensor | None = None) -> Tensor:
    """Between two tensors that broadcast; either may be left out."""
    x = x if least is None else torch.maximum(x, least)
    return x if most is None else torch.minimum(x, most)


@spells(aten.copy.default)
def copy(target: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """Return the source in the dtype and the shape of what it is copied to."""
    return source.to(target.dtype).expand(target.shape)


# Convolutions ----------------------------------------------------------------------------------


@spells(aten.convolution.default)
def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    """Along a sequence, with one filter for each channel or with all channels in each filter.

    x: [B, C, S]; weight: [O, C / groups, taps]; a tap is a shifted slice times its weights.
    """
    is_by_channel = groups == x.shape[1] == weight.shape[0]
    if x.dim() != 3 or transposed or list(stride) != [1] or not (is_by_channel or groups == 1):
        return NotImplemented
    taps, step, pad = weight.shape[2], dilation[0], padding[0]
    length = x.shape[2] + 2 * pad - step * (taps - 1)
    padded = torch.constant_pad_nd(x, [pad, pad]) if pad else x
    out: Any = None
    for tap in range(taps):
        seen = padded.narrow(2, tap * step, length)  # [B, C, length]
        filters = weight[:, :, tap]
        part = seen * filters if is_by_channel else filters @ seen
        out = part if out is None else out + part
    return out if bias is None else out + bias[:, None]
