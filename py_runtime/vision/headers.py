"""The header of an image file, read before anything is decoded: its kind and its size.

Nothing but the size is believed, and that is compared with what is decoded.
"""

import struct
from dataclasses import dataclass

from py_runtime.base.errors import RequestError

MAX_SIDE = 16_384
MAX_PIXELS = 1 << 26  # 200 MB, decoded
MAX_BYTES = 64 << 20
PNG, JPEG, WEBP, GIF = "image/png", "image/jpeg", "image/webp", "image/gif"
KINDS = "PNG, JPEG, WebP and GIF"
SIDEWAYS = (5, 6, 7, 8)  # orientations that swap width and height
ORIENTATION = 0x0112
# Markers of JPEG that carry a size: all frames but tables (C4), arithmetic ones (CC) and C8.
FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
ALONE = frozenset((0x01, *range(0xD0, 0xD9)))  # markers without a length
EXIF = b"Exif\0\0"


@dataclass(frozen=True)
class ImageHeader:
    """The kind of an image file, and its size as people see it."""

    kind: str
    width: int
    height: int


def read_header(data: bytes, where: str) -> ImageHeader:
    """Return what the file says; RequestError for one that cannot be decoded here."""
    if len(data) > MAX_BYTES:
        raise fault(where, f"has {len(data):,} bytes; up to {MAX_BYTES:,} are read")
    try:
        header = _header(data)
    except (struct.error, IndexError):
        raise fault(where, "ends within its header") from None
    if header is None:
        start = data[:512].lstrip().lower()
        if start.startswith((b"<svg", b"<?xml", b"<!doctype svg")):
            raise fault(where, "is SVG, a drawing in words: save it as PNG first")
        raise fault(where, f"is none of the kinds that can be read: {KINDS}")
    return checked(header, where)


def checked(header: ImageHeader, where: str) -> ImageHeader:
    """Return the header; RequestError where there are more pixels than can be decoded."""
    width, height = header.width, header.height
    if not (width and height):
        raise fault(where, f"is {width} × {height} pixels")
    if max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
        raise fault(
            where,
            f"is {width:,} × {height:,} pixels; up to {MAX_SIDE:,} each way and "
            f"{MAX_PIXELS // 1_000_000} million altogether can be read: make it smaller first",
        )
    return header


def fault(where: str, text: str) -> RequestError:
    """Return the error of an image that cannot be read."""
    return RequestError(f"{where}: the image {text}", "messages")


def _header(data: bytes) -> ImageHeader | None:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return ImageHeader(PNG, *struct.unpack_from(">II", data, 16))
    if data.startswith((b"GIF87a", b"GIF89a")):
        return ImageHeader(GIF, *struct.unpack_from("<HH", data, 6))
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return ImageHeader(WEBP, *_webp_size(data))
    if data.startswith(b"\xff\xd8"):
        return _jpeg(data)
    return None


def _webp_size(data: bytes) -> tuple[int, int]:
    form = data[12:16]
    if form == b"VP8X":
        return _of_24_bits(data, 24) + 1, _of_24_bits(data, 27) + 1
    if form == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = struct.unpack_from("<HH", data, 26)
    return width & 0x3FFF, height & 0x3FFF


def _of_24_bits(data: bytes, at: int) -> int:
    return data[at] | data[at + 1] << 8 | data[at + 2] << 16


def _jpeg(data: bytes) -> ImageHeader:
    """Walk the segments up to the frame, and note which way up the camera was held."""
    at, is_sideways = 2, False
    while True:
        if data[at] != 0xFF:
            raise IndexError
        marker = data[at + 1]
        if marker == 0xFF:  # padding
            at += 1
            continue
        if marker in ALONE:
            at += 2
            continue
        (length,) = struct.unpack_from(">H", data, at + 2)
        if marker in FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            size = (height, width) if is_sideways else (width, height)
            return ImageHeader(JPEG, *size)
        if marker == 0xE1 and data[at + 4 : at + 10] == EXIF:
            is_sideways = _orientation(data[at + 10 : at + 2 + length]) in SIDEWAYS
        at += 2 + max(length, 2)


def _orientation(exif: bytes) -> int:
    """Return the orientation that a camera noted; 1 is upright."""
    order = {b"II": "<", b"MM": ">"}.get(exif[:2])
    if order is None:
        return 1
    try:
        (first,) = struct.unpack_from(f"{order}I", exif, 4)
        (count,) = struct.unpack_from(f"{order}H", exif, first)
        for number in range(count):
            tag, _, _, value = struct.unpack_from(f"{order}HHIH", exif, first + 2 + 12 * number)
            if tag == ORIENTATION:
                return int(value)
    except struct.error:
        pass
    return 1
