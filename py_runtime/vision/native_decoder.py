"""Image files decoded by Pillow, natively."""

import io
import warnings

import numpy as np

from py_runtime.base.errors import RequestError
from py_runtime.vision.headers import JPEG, fault

FORMATS = ("PNG", "JPEG", "WEBP", "GIF")


async def decode(data: bytes, kind: str, where: str) -> np.ndarray:
    """Return the first frame, the right way up: u8 [H, W, 3]."""
    try:
        from PIL import Image, ImageOps  # optional: many never send an image
    except ImportError:
        raise RequestError(
            f"{where}: Pillow decodes images, and is not installed: pip install pillow", "messages"
        ) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd metadata
            with Image.open(io.BytesIO(data), formats=FORMATS) as opened:
                image = ImageOps.exif_transpose(opened) if kind == JPEG else opened
                return np.asarray(image.convert("RGB"))
    except Exception as error:  # decoders of four formats, each with errors of its own
        raise fault(where, f"cannot be decoded: {error}") from None
