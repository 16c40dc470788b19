"""Collects the libraries that the page imports from npm, with their licences, into build/vendor."""

import re
import sys
from pathlib import Path

from tools.errors import UserError, exit_status
from tools.files import BUILD, ROOT, write_whole

VENDOR = BUILD / "vendor"
NODE_MODULES = ROOT / "node_modules"
# name in the page -> ES module of the package, and its licence
MODULES = {
    "dompurify.js": ("dompurify/dist/purify.es.mjs", "dompurify/LICENSE"),
    "idb.js": ("idb/build/index.js", "idb/LICENSE"),
    "marked.js": ("marked/lib/marked.esm.js", "marked/LICENSE"),
}
# The maps stay behind, so nothing should ask for them.
SOURCE_MAP = re.compile(rb"\n//# sourceMappingURL=\S+\s*$")


class VendorError(UserError):
    """A library is missing; says what to run."""


def collect(packages: Path = NODE_MODULES, vendor: Path = VENDOR) -> None:
    """Each module with its licence, without references to source maps."""
    for name, (module, licence) in MODULES.items():
        write_whole(vendor / name, SOURCE_MAP.sub(b"\n", read(packages / module)))
        write_whole(vendor / name.replace(".js", "-licence.txt"), read(packages / licence))


def read(path: Path) -> bytes:
    """VendorError where npm has not installed it."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise VendorError(f"{path} cannot be read: {error.strerror}. Run: npm ci") from error


if __name__ == "__main__":
    sys.exit(exit_status(collect))
