"""PNG files that move: frames in one palette, of each the rectangle that changed."""

import struct
import zlib
from collections.abc import Iterator, Sequence

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOURS = 256
INDEXED = 3  # the type of colour: bytes are places in the palette
Frame = tuple[np.ndarray, float]  # rgb: [H, W, 3] uint8, and the seconds it stays


def animated_png(frames: Sequence[Frame]) -> bytes:
    """Plays again and again; colours beyond the palette become their nearest."""
    height, width, _ = frames[0][0].shape
    palette = common_colours([pixels for pixels, _ in frames])
    head = struct.pack(">IIBBBBB", width, height, 8, INDEXED, 0, 0, 0)
    chunks = [
        chunk(b"IHDR", head),
        chunk(b"PLTE", palette.tobytes()),
        chunk(b"acTL", struct.pack(">II", len(frames), 0)),
        *frame_chunks(frames, palette),
        chunk(b"IEND", b""),
    ]
    return SIGNATURE + b"".join(chunks)


def frame_chunks(frames: Sequence[Frame], palette: np.ndarray) -> Iterator[bytes]:
    """The first is the image that viewers show who know no animation."""
    number = 0  # of chunks that tell their order
    before: np.ndarray | None = None
    for pixels, seconds in frames:
        indices = nearest(pixels, palette)  # [H, W]
        top, bottom, left, right = changed(before, indices)
        part = indices[top:bottom, left:right]
        control = (number, part.shape[1], part.shape[0], left, top, round(seconds * 1000), 1000)
        yield chunk(b"fcTL", struct.pack(">IIIIIHHBB", *control, 0, 0))
        rows = np.pad(part, ((0, 0), (1, 0)))  # a row begins with its filter: none
        data = zlib.compress(rows.tobytes(), 9)
        if before is None:
            yield chunk(b"IDAT", data)
            number += 1
        else:
            yield chunk(b"fdAT", struct.pack(">I", number + 1) + data)
            number += 2
        before = indices


def chunk(name: bytes, data: bytes) -> bytes:
    """With its length before it, and its checksum behind."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def changed(before: np.ndarray | None, after: np.ndarray) -> tuple[int, int, int, int]:
    """The least rectangle (top, bottom, left, right) outside which nothing differs."""
    if before is None:
        return 0, after.shape[0], 0, after.shape[1]
    differs = before != after
    rows, columns = np.flatnonzero(differs.any(1)), np.flatnonzero(differs.any(0))
    if not len(rows):
        return 0, 1, 0, 1  # a frame has at least a pixel
    return int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1


def packed(pixels: np.ndarray) -> np.ndarray:
    """A colour as one number: [..., 3] → [...]."""
    red, green, blue = (pixels[..., part].astype(np.uint32) for part in range(3))
    return (red << 16) | (green << 8) | blue


def common_colours(images: Sequence[np.ndarray]) -> np.ndarray:
    """[at most 256, 3]: those of most pixels."""
    counted: dict[int, int] = {}
    for image in images:
        colours, counts = np.unique(packed(image), return_counts=True)
        for colour, count in zip(colours.tolist(), counts.tolist(), strict=True):
            counted[colour] = counted.get(colour, 0) + count
    most = sorted(counted, key=lambda colour: -counted[colour])[:COLOURS]
    return np.array([[c >> 16, c >> 8 & 255, c & 255] for c in most], np.uint8)


def nearest(pixels: np.ndarray, palette: np.ndarray) -> np.ndarray:
    """[H, W, 3] → places in the palette [H, W]."""
    colours, places = np.unique(packed(pixels), return_inverse=True)
    wanted = np.stack([colours >> 16, colours >> 8 & 255, colours & 255], -1).astype(np.int32)
    distances = ((wanted[:, None] - palette.astype(np.int32)) ** 2).sum(-1)  # [colours, 256]
    indices: np.ndarray = distances.argmin(1).astype(np.uint8)[places.reshape(pixels.shape[:2])]
    return indices
