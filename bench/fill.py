"""A model of random weights, made from a template: python3 fill.py TEMPLATE OUT.

bench/synthetic.py writes templates. Standard library only: it runs where nothing can be installed.
"""

import base64
import hashlib
import json
import random
import shutil
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TEMPLATE = "template.json"
BLOCK = 1 << 20
FORMATS = {"f16": "<e", "f32": "<f"}


def fill(template: Path, out: Path) -> None:
    """Write the folder whole, or leave nothing."""
    about = json.loads((template / TEMPLATE).read_text())
    partial = out.with_name(f".{out.name}.part")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    files: dict[str, dict[str, Any]] = {}
    for name in about["files"]:
        shutil.copyfile(template / name, partial / name)
        data = (template / name).read_bytes()
        files[name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    noise = random.Random(0)
    for shard in about["shards"]:
        files[shard["name"]] = write_shard(template, shard, partial / shard["name"], noise)
    size = sum(file["size"] for file in files.values())
    manifest = {**about["manifest"], "size": size, "files": files}
    (partial / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    partial.replace(out)


def write_shard(
    template: Path, shard: dict[str, Any], path: Path, noise: random.Random
) -> dict[str, Any]:
    """Write header and data; return the size and hash that the manifest has to state."""
    sha256, size = hashlib.sha256(), 0
    with path.open("wb") as file:
        for data in (base64.b64decode(shard["header"]), *blocks(template, shard["spans"], noise)):
            file.write(data)
            sha256.update(data)
            size += len(data)
    return {"size": size, "sha256": sha256.hexdigest()}


def blocks(template: Path, spans: list[dict[str, Any]], noise: random.Random) -> Iterator[bytes]:
    """Yield the data of each span in turn: bytes of a file, one number repeated, or noise."""
    for span in spans:
        left = span["bytes"]
        if span["kind"] == "file":
            data = (template / span["value"]).read_bytes()
            yield data[span["begin"] : span["begin"] + left]
            left = 0
        elif span["kind"] in FORMATS:
            number = struct.pack(FORMATS[span["kind"]], span["value"])
            block = number * (BLOCK // len(number))
        elif span["kind"] == "bytes":
            # Whole rows lie in a file, and rows are whole repetitions.
            repeated = bytes.fromhex(span["value"])
            block = repeated * (BLOCK // len(repeated))
        while left:
            if span["kind"] == "noise":
                block = noise.randbytes(min(BLOCK, left))
            yield block[:left]
            left -= min(len(block), left)
        yield bytes(span["padding"])


if __name__ == "__main__":
    fill(Path(sys.argv[1]), Path(sys.argv[2]))
