"""The size of the scripts that a browser fetches before somebody can chat."""

import re
from pathlib import Path

from tools.compress import ENCODINGS, compress
from tools.files import ROOT
from tools.script_circles import static_imports_of

WEB = ROOT / "web"
MAX_BYTES = 60_000  # compressed as the server prefers
TAG = re.compile(r"<script\b[^>]*\bsrc=\"([^\"]+)\"")
WORKER = re.compile(r"""(?:new Worker|startWorker)\(new URL\(["']\./([^"']+)["'], import""")


def needed_scripts() -> set[Path]:
    """Find what index.html imports at once, and the workers that this starts."""
    found: set[Path] = set()
    left = [WEB / name for name in TAG.findall((WEB / "index.html").read_text())]
    while left:
        script = left.pop()
        if script in found:
            continue
        found.add(script)
        left += static_imports_of(script)
        left += [script.parent / name for name in WORKER.findall(script.read_text())]
    return found


def test_starting_and_chatting_takes_little_script() -> None:
    encoding = next(iter(ENCODINGS))
    sizes = {
        path.relative_to(WEB).as_posix(): len(compress(encoding, path.read_bytes()))
        for path in needed_scripts()
    }
    assert {"app.js", "worker.js"} <= sizes.keys()
    assert sum(sizes.values()) <= MAX_BYTES, sizes
