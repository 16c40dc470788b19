"""What a decoding step must read at the least: the weights, once each."""

from collections.abc import Mapping

from py_runtime.base.shapes import numel
from py_runtime.folder.layout import Constant

ROTARY_TABLES = ("cos", "sin")  # a row of each


def bytes_read_per_token(constants: Mapping[str, Constant]) -> int:
    """Of an embedding that is not the head as well, only a row is read."""
    is_tied = "lm_head.weight" not in constants
    looked_up = () if is_tied else ("embed_tokens.weight", "embed_tokens.scales")
    return sum(
        numel(constant.dims) * constant.stored.host.itemsize
        for name, constant in constants.items()
        if name not in (*looked_up, *ROTARY_TABLES)
    )
