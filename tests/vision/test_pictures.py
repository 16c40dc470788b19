"""Images of a request: kinds and sizes, how they are decoded and scaled, what is refused."""

import base64
import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from py_runtime.base.errors import RequestError
from py_runtime.generation.messages import parse_messages
from py_runtime.vision.headers import read_header
from py_runtime.vision.picture import picture_of
from py_runtime.vision.resample import BICUBIC, BILINEAR, LANCZOS, Filter, resized
from tests.runners import Runner, wait

CASES = "tests.vision.in_runtime"
WIDTH, HEIGHT = 21, 13
ORIENTATION = 0x0112


def picture() -> Image.Image:
    rng = np.random.default_rng(0)
    smooth = rng.integers(0, 256, (3, 4, 3), dtype=np.uint8)
    return Image.fromarray(smooth).resize((WIDTH, HEIGHT))


def saved(kind: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    picture().save(stream, kind, **options)
    return stream.getvalue()


def sideways() -> bytes:
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    return saved("JPEG", exif=exif, quality=95)


FILES: dict[str, bytes] = {
    "png": saved("PNG"),
    "jpeg": saved("JPEG", quality=95),
    "progressive jpeg": saved("JPEG", progressive=True),
    "jpeg on its side": sideways(),
    "webp": saved("WEBP", quality=95),
    "webp without loss": saved("WEBP", lossless=True),
    "gif": saved("GIF", save_all=True, append_images=[Image.new("RGB", (WIDTH, HEIGHT))]),
}


def png_of(width: int, height: int) -> bytes:
    """Write a picture whose header claims another size."""
    return FILES["png"][:16] + struct.pack(">II", width, height) + FILES["png"][24:]


HOSTILE: dict[str, tuple[bytes, str]] = {
    "huge": (png_of(50_000, 50_000), "50,000 × 50,000 pixels"),
    "flat": (png_of(0, 9), "is 0 × 9 pixels"),
    "cut off in its header": (FILES["jpeg"][:30], "ends within its header"),
    "empty": (b"", "none of the kinds"),
    "a text": (b"Hello", "none of the kinds"),
    "a drawing": (b'<svg xmlns="http://www.w3.org/2000/svg"/>', "is SVG"),
    "lying": (png_of(WIDTH, 4 * HEIGHT), ""),
    "truncated": (FILES["jpeg"][:-200], ""),
}


@pytest.mark.parametrize("name", FILES)
def test_headers_have_the_size_that_people_see(name: str) -> None:
    header = read_header(FILES[name], "x")
    is_sideways = name == "jpeg on its side"
    wanted = (HEIGHT, WIDTH) if is_sideways else (WIDTH, HEIGHT)
    assert (header.width, header.height) == wanted


def test_files_are_decoded_the_right_way_up(runner: Runner) -> None:
    hostile = [data for data, _ in HOSTILE.values()]
    given = [np.frombuffer(data, np.uint8) for data in (*FILES.values(), *hostile)]
    found = runner.run(CASES, "decoded", files=given)
    pixels = np.asarray(picture()).astype(int)
    for name, image in zip(FILES, found, strict=False):
        wanted = np.rot90(pixels, -1) if name == "jpeg on its side" else pixels
        assert image.shape == wanted.shape, name
        assert np.abs(image - wanted).mean() < 12, name
    for (name, (_, said)), fault in zip(HOSTILE.items(), found[len(FILES) :], strict=True):
        # A browser may show what is there of a file that is cut off.
        assert isinstance(fault, str) or name == "truncated", name
        assert isinstance(fault, str) is False or said in fault, (name, fault)


@pytest.mark.parametrize(("how", "of_pillow"), [(LANCZOS, 1), (BICUBIC, 3), (BILINEAR, 2)])
def test_sizes_are_changed_as_pillow_does(how: Filter, of_pillow: int) -> None:
    rng = np.random.default_rng(0)
    for size, wanted in (((37, 53), (64, 96)), ((90, 60), (16, 12)), ((1, 40), (8, 8))):
        image = rng.integers(0, 256, (*size, 3), dtype=np.uint8)
        there = Image.fromarray(image).resize(wanted, Image.Resampling(of_pillow))
        np.testing.assert_array_equal(resized(image, *wanted, how), np.asarray(there))


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"type": "image_url", "image_url": {"url": "https://x.org/a.png"}}, "not fetched"),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64"}}, "no comma"),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,%"}}, "not base64"),
        ({"type": "image_url", "image_url": {}}, "must be an address"),
        ({"type": "image_url", "image_url": {"url": "data:,x", "detail": "most"}}, "detail"),
        ({"type": "image", "image": 3}, "must be a path"),
        ({"type": "image", "image": "/nowhere.png"}, "/nowhere.png"),
        ({"type": "image", "image": np.zeros((2, 2, 7), np.uint8)}, "[H, W, 3]"),
        ({"type": "image", "image": np.zeros((2, 2, 3))}, "bytes, from 0 to 255"),
    ],
)
def test_parts_that_are_no_image_are_refused(part: Any, said: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_messages([{"role": "user", "content": [part]}])
    assert said in str(caught.value)
    assert "messages[0].content[0]" in str(caught.value)


def test_an_image_is_known_by_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(FILES["png"])
    url = f"data:image/png;base64,{base64.b64encode(FILES['png']).decode()}"
    parts: list[Any] = [
        {"type": "image", "image": path},
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "image", "image": picture()},
        {"type": "image", "image": np.asarray(picture())},
        {"type": "image_url", "image_url": {"url": url, "detail": "low"}},
    ]
    file, same, pillow, array, low = (picture_of(part, "x") for part in parts)
    assert file.digest == same.digest != pillow.digest == array.digest
    assert low.is_coarse
    assert low.digest != same.digest
    for each in (file, pillow, low):
        np.testing.assert_array_equal(wait(each.pixels()), np.asarray(picture()))
