"""Images as people send them, and the parts of models that see them."""

import io
import struct
import zlib
from random import Random

import numpy as np
from PIL import Image

from py_runtime.adapters.files import MemorySource
from py_runtime.base.errors import InpageError
from py_runtime.gguf.reader import open_gguf
from py_runtime.gguf.tower import read_tower
from py_runtime.model.gguf_store import GgufStore
from py_runtime.vision.picture import picture_of
from tests.fuzz.damage import damage_bytes
from tests.fuzz.driver import Target
from tests.fuzz.in_line import result_of
from tests.vision.towers import TOWERS, decoder_of, model_file, tower_files

SIZE = (9, 7)
HEADER = 4000  # bytes of an mmproj file that come before its data, nearly
PNG, LYING = b"\x89PNG", 0.2
FRAMES = 200  # of an animation, each as large as the first


def images() -> list[bytes]:
    """Return sound images of all kinds, with what cameras and programs add to them."""
    rng = np.random.default_rng(0)
    image = Image.fromarray(rng.integers(0, 256, (*SIZE, 3), dtype=np.uint8))
    exif = Image.Exif()
    exif[0x0112] = 6
    profile = bytes(rng.integers(0, 256, 300, dtype=np.uint8))  # of colours: read by nobody
    frames = [image.rotate(90 * turn) for turn in range(FRAMES)]
    ways: list[tuple[str, dict[str, object]]] = [
        ("PNG", {"icc_profile": profile}),
        ("PNG", {"exif": exif}),
        ("PNG", {"save_all": True, "append_images": frames}),
        ("JPEG", {"icc_profile": profile}),
        ("JPEG", {"exif": exif, "progressive": True}),
        ("WEBP", {"lossless": True, "icc_profile": profile}),
        ("WEBP", {"exif": exif}),
        ("GIF", {"save_all": True, "append_images": frames}),
    ]
    found = []
    for kind, options in ways:
        stream = io.BytesIO()
        image.save(stream, kind, **options)
        found.append(stream.getvalue())
    return found


def change_image(rng: Random, base: bytes) -> bytes:
    """Damage it; now and then a PNG says that it is far larger than it is."""
    if base.startswith(PNG) and rng.random() < LYING:
        width, height = (1 << rng.randrange(1, 31) for _ in range(2))
        header = base[12:16] + struct.pack(">II", width, height) + base[24:29]
        base = base[:12] + header + struct.pack(">I", zlib.crc32(header)) + base[33:]
    return damage_bytes(rng, base)


def read_image(data: bytes) -> None:
    """Read its header, then decode it; the pixels are as many as the header said."""
    picture = picture_of({"type": "image", "image": data}, "messages[0].content[0]")
    pixels = result_of(picture.pixels())
    assert pixels.shape == (picture.height, picture.width, 3)


def change_tower(rng: Random, base: bytes) -> bytes:
    return damage_bytes(rng, base[:HEADER]) + base[HEADER:]


def read_projector(data: bytes) -> None:
    """Read an mmproj file for each kind of decoder, of which one at most is its own."""
    file = result_of(open_gguf([MemorySource("mmproj.gguf", data)]))
    faults = []
    for tower in TOWERS.values():
        try:
            found = read_tower(file, decoder_of(tower.decoder), tower.decoder)
        except InpageError as error:
            faults.append(error)
        else:
            found.constants.check(found.program)
    if len(faults) == len(TOWERS):
        raise faults[0]


def read_pair(data: bytes) -> None:
    """Read it beside a model, as people drop the two."""
    sources = [MemorySource("model.gguf", model_file()), MemorySource("mmproj-model.gguf", data)]
    result_of(GgufStore("small", sources).open())


TARGETS = [
    Target("image", images, change_image, read_image, count=1000, memory=64 << 20),
    Target("mmproj", tower_files, change_tower, read_projector, count=500),
    Target("model and mmproj", lambda: tower_files()[:1], change_tower, read_pair, count=120),
]
