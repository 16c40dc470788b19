"""The README's animated PNG: read again, it shows the screenshots it was made of."""

import io
from pathlib import Path

import numpy as np
from PIL import Image, ImageSequence

from tools.moving_picture import save_animation

BLANK = np.full((20, 30, 3), 250, np.uint8)


def screenshot(pixels: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def test_frames_and_their_times_come_back(tmp_path: Path) -> None:
    spot = BLANK.copy()
    spot[4:6, 7:12] = (200, 10, 30)
    spot[9, 9] = (251, 250, 250)  # almost the background, and still not the same
    other = np.random.default_rng(1).choice(np.array([0, 99, 255], np.uint8), (20, 30, 3))
    shown = [BLANK, spot, other]
    save_animation([screenshot(pixels) for pixels in shown], [1.5, 0.06, 4.0], tmp_path / "x.png")
    with Image.open(tmp_path / "x.png") as image:
        assert image.mode == "P"
        assert image.info["loop"] == 0, "again and again"
        frames = ImageSequence.Iterator(image)
        for frame, pixels, milliseconds in zip(frames, shown, (1500, 60, 4000), strict=True):
            assert frame.info["duration"] == milliseconds
            assert (np.asarray(frame.convert("RGB")) == pixels).all()


def test_more_colours_than_a_palette_holds(tmp_path: Path) -> None:
    """The colour of most of the picture stays; gradients come close to theirs."""
    shades = np.arange(20 * 30, dtype=np.uint32).reshape(20, 30)
    gradient = np.stack([shades % 256, shades // 256, 0 * shades], -1).astype(np.uint8)
    page = np.hstack([gradient, np.full((20, 300, 3), (13, 17, 23), np.uint8)])
    save_animation([screenshot(page)], [1.0], tmp_path / "x.png")
    with Image.open(tmp_path / "x.png") as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)
    assert (pixels[:, 30:] == (13, 17, 23)).all()
    assert np.abs(pixels - page).max() < 32
