"""Epilogues: what becomes of a product's sums before they are stored."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from py_runtime.base.shapes import ceil_div
from py_runtime.live.launch import Bindable
from py_runtime.live.values import LiveTensor
from py_runtime.ops.kernels.matrices import Matrices, rows_of


@dataclass(frozen=True)
class Epilogue:
    """The fragments of an epilogue, and what they bind beside x and the weight."""

    plugs: Mapping[str, str]
    bind: Mapping[str, Bindable]
    pairs: int  # of rows, as the shader pairs them
    fields: Mapping[str, object]  # parameters of its own
    start: str = "first_row"  # the parameter that says where a matrix begins
    start_rows: int = 1  # rows that this parameter counts as one
    each_token: LiveTensor | None = None  # a bias that has a row for each token

    def narrow_to(self, matrices: Matrices) -> "Epilogue":
        """Return the epilogue for some of an op's matrices."""
        fields = {**self.fields, self.start: matrices[0].first_row // self.start_rows}
        if "rows" in fields:
            fields["rows"] = rows_of(matrices)
        return replace(self, pairs=ceil_div(rows_of(matrices), 2), fields=fields)


def bias_fields(bias: Bindable | None) -> dict[str, object]:
    """Return the parameters about a bias: [rows], or [..., tokens, rows] for one each."""
    own = each_token(bias)
    return {"has_bias": bias is not None, "bias_stride": 0 if own is None else own.max_dims[-1]}


def each_token(bias: Bindable | None) -> LiveTensor | None:
    """Return the bias if each token has its own."""
    return bias if isinstance(bias, LiveTensor) and bias.rank > 1 else None


def make_residual_epilogue(
    x: LiveTensor,
    rows: int,
    out: Bindable,
    bias: Bindable | None = None,
    residual: LiveTensor | None = None,
) -> Epilogue:
    """Add a bias and a residual to sums: out, residual: [tokens, rows].

    x is bound, unread, in place of what is None.
    """
    bind = {"out": out, "bias": bias or x, "residual": residual or x}
    has = {**bias_fields(bias), "has_residual": residual is not None}
    places = {"rows": rows, "first_row": 0, "stride": rows}
    plugs = {"epilogue": "rows", "output": "residual"}
    fields = {**places, **has}
    return Epilogue(plugs, bind, ceil_div(rows, 2), fields, each_token=each_token(bias))


def make_bias_epilogue(x: LiveTensor, rows: int, out: Bindable, bias: Bindable | None) -> Epilogue:
    """Add a bias to sums; kernels with this epilogue bind one buffer less."""
    places = {"rows": rows, "first_row": 0, "stride": rows, **bias_fields(bias)}
    bind, plugs = {"out": out, "bias": bias or x}, {"epilogue": "rows", "output": "bias"}
    return Epilogue(plugs, bind, ceil_div(rows, 2), places, each_token=each_token(bias))


def make_scaled_epilogue(rows: int, out: Bindable, factors: LiveTensor) -> Epilogue:
    """Multiply sums by a factor for each row."""
    places = {"rows": rows, "first_row": 0, "stride": rows}
    bind = {"out": out, "factors": factors}
    return Epilogue({"epilogue": "rows", "output": "scaled"}, bind, ceil_div(rows, 2), places)
