"""PNG files that move: taken apart again, they give the frames they were made of."""

import struct
import zlib
from collections.abc import Iterator

import numpy as np

from tools.animated_png import SIGNATURE, Frame, animated_png


def chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    assert data.startswith(SIGNATURE)
    at = len(SIGNATURE)
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length) == (zlib.crc32(name + body),)
        yield name, body
        at += 12 + length


def frames_in(data: bytes) -> list[Frame]:
    """As a viewer shows them: each is laid over the one before."""
    frames: list[Frame] = []
    numbers = []
    palette = canvas = control = None
    for name, body in chunks(data):
        if name == b"IHDR":
            width, height = struct.unpack_from(">II", body)
            canvas = np.zeros((height, width, 3), np.uint8)
        elif name == b"PLTE":
            palette = np.frombuffer(body, np.uint8).reshape(-1, 3)
        elif name == b"fcTL":
            control = struct.unpack(">IIIIIHHBB", body)
            numbers.append(control[0])
        elif name in (b"IDAT", b"fdAT"):
            assert control is not None
            assert palette is not None
            assert canvas is not None
            if name == b"fdAT":
                numbers.append(struct.unpack_from(">I", body)[0])
                body = body[4:]
            _, width, height, left, top, delay, parts, *_ = control
            rows = np.frombuffer(zlib.decompress(body), np.uint8).reshape(height, width + 1)
            assert not rows[:, 0].any()
            canvas = canvas.copy()
            canvas[top : top + height, left : left + width] = palette[rows[:, 1:]]
            frames.append((canvas, delay / parts))
    assert numbers == list(range(len(numbers))), "in the order they say"
    return frames


def test_frames_come_back() -> None:
    """A blank page, a spot on it, nothing new, and a picture that is another throughout."""
    blank = np.full((20, 30, 3), 250, np.uint8)
    spot = blank.copy()
    spot[4:6, 7:12] = (200, 10, 30)
    other = np.random.default_rng(1).choice(np.array([0, 99, 255], np.uint8), (20, 30, 3))
    made = [(blank, 1.5), (spot, 0.06), (spot, 0.7), (other, 4.0)]
    data = animated_png(made)
    found = frames_in(data)
    assert [seconds for _, seconds in found] == [1.5, 0.06, 0.7, 4.0]
    for (wanted, _), (pixels, _) in zip(made, found, strict=True):
        assert (pixels == wanted).all()


def test_colours_beyond_the_palette_become_their_nearest() -> None:
    shades = np.arange(20 * 30, dtype=np.uint32).reshape(20, 30)
    many = np.stack([shades % 256, shades // 256, 0 * shades], -1).astype(np.uint8)
    common = np.zeros((20, 300, 3), np.uint8)  # black has the most pixels by far
    ((pixels, _),) = frames_in(animated_png([(np.hstack([many, common]), 1.0)]))
    assert (pixels[:, 30:] == 0).all()
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) == 256
