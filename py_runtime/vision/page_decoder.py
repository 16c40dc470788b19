"""Image files decoded by the browser, in the page."""

import numpy as np

from py_runtime.base.errors import InpageError
from py_runtime.bridge.calls import answer_of, bridge
from py_runtime.vision.headers import fault


async def decode(data: bytes, kind: str, where: str) -> np.ndarray:
    """Return the first frame, the right way up: u8 [H, W, 3]."""
    raise fault(where, "cannot be decoded here yet")
