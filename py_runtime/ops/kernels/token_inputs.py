"""Inputs of products: x as it lies in memory, or computed while a kernel for one token reads it."""

from collections.abc import Mapping
from dataclasses import dataclass

from py_runtime.live.launch import Bindable
from py_runtime.live.values import LiveTensor


@dataclass(frozen=True)
class Norm:
    """An RMS norm of x; weight: [columns]."""

    weight: LiveTensor
    eps: float


@dataclass(frozen=True)
class Summed:
    """An x that is computed first: (residual + norm(of)) * factor."""

    of: LiveTensor
    norm: Norm
    residual: LiveTensor
    factor: LiveTensor | None


@dataclass(frozen=True)
class TokenInput:
    """The fragment that gives a GEMV its token, linear/fragments/token_*, and what it binds."""

    plugs: Mapping[str, str]
    bind: Mapping[str, Bindable]
    constants: Mapping[str, float]

    @classmethod
    def plain(cls, x: Bindable) -> "TokenInput":
        """Read x as it lies in memory."""
        return cls({"token": "plain"}, {"x": x}, {})

    @classmethod
    def summed(cls, summed: Summed, x: Bindable) -> "TokenInput":
        """Compute x from its summands; the kernel writes it for later ones."""
        bind = {
            "x": summed.of,
            "sum_norm": summed.norm.weight,
            "added_to": summed.residual,
            "sum_factor": summed.factor or summed.of,
            "token_sum": x,
        }
        constants = {"SUM_EPS": summed.norm.eps, "HAS_FACTOR": float(summed.factor is not None)}
        return cls({"token": "summed"}, bind, constants)
