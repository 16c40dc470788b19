"""The least that a model must do: read its weights once a step, multiply by them once a token."""

from collections.abc import Mapping

from py_runtime.base.shapes import numel
from py_runtime.decoder.config import DecoderConfig
from py_runtime.decoder.tensors import expected_shapes
from py_runtime.folder.layout import Constant

ROTARY_TABLES = ("cos", "sin")  # a row of each


def bytes_read_per_token(constants: Mapping[str, Constant]) -> int:
    """Return the bytes a token reads; of an embedding that is not the head, only a row is read."""
    is_tied = "lm_head.weight" not in constants
    looked_up = () if is_tied else ("embed_tokens.weight", "embed_tokens.scales")
    return sum(
        numel(constant.dims) * constant.stored.host.itemsize
        for name, constant in constants.items()
        if name not in (*looked_up, *ROTARY_TABLES)
    )


def arithmetic_per_token(config: DecoderConfig) -> int:
    """Return the multiplications and additions of the layers' matrices.

    Attention and the head, which sees a prompt's last token alone, are left out.
    """
    shapes = expected_shapes(config).items()
    return sum(2 * numel(dims) for name, dims in shapes if name.startswith("layers.") and dims[1:])
