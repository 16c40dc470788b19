"""Image files decoded by the browser, in the page."""

from typing import Any

import numpy as np
from pyodide.ffi import JsException, to_js

from py_runtime.vision.headers import fault

# Pixels as the file has them: what colours mean on a screen is no matter of the model's.
OPTIONS = {"colorSpaceConversion": "none", "premultiplyAlpha": "none"}


async def decode(data: bytes, kind: str, where: str) -> np.ndarray:
    """Return the first frame, the right way up: u8 [H, W, 3]."""
    from js import Array, Blob, OffscreenCanvas, createImageBitmap

    try:
        blob = Blob.new(Array.of(to_js(data)), _object({"type": kind}))
        bitmap = await createImageBitmap(blob, _object(OPTIONS))
        width, height = bitmap.width, bitmap.height
        canvas = OffscreenCanvas.new(width, height)
        context = canvas.getContext("2d", _object({"willReadFrequently": True}))
        context.drawImage(bitmap, 0, 0)
        bitmap.close()
        pixels = context.getImageData(0, 0, width, height).data.to_bytes()
    except JsException as error:
        raise fault(where, f"cannot be decoded: {error.message}") from None
    return np.ascontiguousarray(np.frombuffer(pixels, np.uint8).reshape(height, width, 4)[:, :, :3])


def _object(fields: dict[str, Any]) -> Any:
    from js import Object

    return to_js(fields, dict_converter=Object.fromEntries)
