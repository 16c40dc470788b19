"""Pictures of a request: known by what they hold, decoded when their pixels are needed."""

import base64
import binascii
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import numpy as np

from py_runtime.base.errors import RequestError
from py_runtime.base.platform import IN_PAGE
from py_runtime.base.short_texts import short
from py_runtime.vision.headers import MAX_BYTES, ImageHeader, checked, fault, read_header

if IN_PAGE:
    from py_runtime.vision.page_decoder import decode
else:
    from py_runtime.vision.native_decoder import decode

# A noncharacter, as those of chat/seams.py: it stands for an image in a message's text.
MARK = "\ufdd5"
PIXELS = "pixels"
GREY, COLOURS, WITH_ALPHA = 2, 3, 4  # dims of an array, and its channels
DATA = "data:"
LOW, DETAILS = "low", ("low", "high", "auto")  # as OpenAI's requests ask for it
COARSE = b"low"
Decode = Callable[[], Awaitable[np.ndarray]]


class Picture:
    """A picture whose size is known; two with the same digest are the same."""

    is_coarse = False  # the whole of it is enough, without parts

    def __init__(self, where: str, header: ImageHeader, digest: bytes, pixels: Decode) -> None:
        self.where = where  # in the request
        self.width, self.height = header.width, header.height
        self.digest = digest
        self._pixels = pixels

    def coarse(self) -> "Picture":
        """Return the same picture, of which the whole is enough."""
        header = ImageHeader(PIXELS, self.width, self.height)
        made = Picture(self.where, header, self.digest + COARSE, self._pixels)
        made.is_coarse = True
        return made

    def __repr__(self) -> str:
        return f"Picture({self.width} × {self.height})"

    async def pixels(self) -> np.ndarray:
        """Return the pixels u8 [H, W, 3]; RequestError if the file lied, or ends too soon."""
        found = await self._pixels()
        if found.shape != (self.height, self.width, COLOURS):
            height, width = found.shape[:2]
            said = f"{self.width} × {self.height}"
            raise fault(self.where, f"says that it is {said} pixels, but is {width} × {height}")
        return found


def picture_of(given: Any, where: str) -> Picture:
    """Return the picture of a content part: OpenAI's image_url, or an `image` of Python's own."""
    if given.get("type") == "image":
        return _own_picture(given.get("image"), where)
    asked = given.get("image_url")
    asked = asked if isinstance(asked, dict) else {"url": asked}
    url, detail = asked.get("url"), asked.get("detail") or "auto"
    if not isinstance(url, str):
        raise RequestError(f"{where}.image_url.url must be an address", "messages")
    if detail not in DETAILS:
        known = ", ".join(DETAILS)
        raise RequestError(f"{where}.image_url.detail must be one of {known}", "messages")
    picture = _of_bytes(_bytes_of(url, where), where)
    return picture.coarse() if detail == LOW else picture


def _bytes_of(url: str, where: str) -> bytes:
    if url[: len(DATA)].lower() != DATA:
        kind = short(url.partition(":")[0])
        raise RequestError(
            f"{where}: addresses of the kind {kind} are not fetched; give the image itself, as "
            "data:image/png;base64,…",
            "messages",
        )
    about, comma, data = url.partition(",")
    if not comma:
        raise RequestError(f"{where}: the data: address has no comma", "messages")
    if len(data) > 2 * MAX_BYTES:
        raise fault(where, f"is too large: up to {MAX_BYTES:,} bytes are read")
    if not about.lower().endswith(";base64"):
        return unquote_to_bytes(data)
    try:
        return base64.b64decode(unquote_to_bytes(data), validate=True)
    except (binascii.Error, ValueError):
        raise RequestError(f"{where}: the data: address is not base64", "messages") from None


def _own_picture(given: Any, where: str) -> Picture:
    """Return the picture of a path, of bytes, of an array, or of an image of Pillow's."""
    if isinstance(given, str | Path):
        try:
            return _of_bytes(Path(given).read_bytes(), where)
        except OSError as error:
            raise RequestError(f"{where}: {error}", "messages") from None
    if isinstance(given, bytes | bytearray):
        return _of_bytes(bytes(given), where)
    if hasattr(given, "convert") and hasattr(given, "size"):  # Pillow's
        given = np.asarray(given.convert("RGB"))
    if isinstance(given, np.ndarray):
        return _of_array(given, where)
    raise RequestError(
        f"{where}.image must be a path, an array [H, W, 3] of bytes or an image of Pillow's, got "
        f"{short(given)}",
        "messages",
    )


def _of_bytes(data: bytes, where: str) -> Picture:
    header = read_header(data, where)

    async def pixels() -> np.ndarray:
        return await decode(data, header.kind, where)

    return Picture(where, header, hashlib.sha256(data).digest(), pixels)


def _of_array(given: np.ndarray, where: str) -> Picture:
    if given.dtype != np.uint8:
        raise RequestError(f"{where}.image must have bytes, from 0 to 255", "messages")
    if given.ndim == GREY:
        given = np.repeat(given[:, :, None], COLOURS, axis=2)
    if given.ndim != COLOURS or given.shape[2] not in (COLOURS, WITH_ALPHA):
        shape = list(given.shape)
        raise RequestError(f"{where}.image must be [H, W, 3], not {shape}", "messages")
    image = np.ascontiguousarray(given[:, :, :COLOURS])
    header = checked(ImageHeader(PIXELS, image.shape[1], image.shape[0]), where)
    named = hashlib.sha256(f"{header.width}x{header.height}:".encode() + image.tobytes())

    async def pixels() -> np.ndarray:
        return image

    return Picture(where, header, named.digest(), pixels)
