"""The libraries that the page imports, collected from npm with their licences into build/vendor."""

import re
import sys
from pathlib import Path

from tools.errors import UserError, exit_status
from tools.files import BUILD, ROOT, write_whole

VENDOR = BUILD / "vendor"
NODE_MODULES = ROOT / "node_modules"
# name in the page -> file of the package, and its licence
MODULES = {
    "dompurify.js": ("dompurify/dist/purify.es.mjs", "dompurify/LICENSE"),
    "highlight.js": (
        "@highlightjs/cdn-assets/es/highlight.min.js",
        "@highlightjs/cdn-assets/LICENSE",
    ),
    "idb.js": ("idb/build/index.js", "idb/LICENSE"),
    "katex.js": ("katex/dist/katex.mjs", "katex/LICENSE"),
    "marked.js": ("marked/lib/marked.esm.js", "marked/LICENSE"),
    # Its smaller build lacks mind maps and architecture, and depends on nothing.
    "mermaid.js": ("@mermaid-js/tiny/dist/mermaid.tiny.js", "@mermaid-js/tiny/LICENSE"),
    # Its other build is for the newest browsers alone, which are fewer than have WebGPU.
    "pdf.js": ("pdfjs-dist/legacy/build/pdf.min.mjs", "pdfjs-dist/LICENSE"),
    "pdf-worker.js": ("pdfjs-dist/legacy/build/pdf.worker.min.mjs", "pdfjs-dist/LICENSE"),
}
# The editor of the notebook, which comes when one is opened. What its parts import from each other
# by the names of packages is a file beside them here.
PARTS = {
    "@codemirror/autocomplete": "codemirror-autocomplete.js",
    "@codemirror/commands": "codemirror-commands.js",
    "@codemirror/lang-python": "codemirror-python.js",
    "@codemirror/language": "codemirror-language.js",
    "@codemirror/state": "codemirror-state.js",
    "@codemirror/streamparser": "codemirror-streamparser.js",
    "@codemirror/view": "codemirror-view.js",
    "@lezer/common": "lezer-common.js",
    "@lezer/highlight": "lezer-highlight.js",
    "@lezer/lr": "lezer-lr.js",
    "@lezer/python": "lezer-python.js",
    "@marijn/find-cluster-break": "find-cluster-break.js",
    "crelt": "crelt.js",
    "style-mod": "style-mod.js",
    "w3c-keyname": "w3c-keyname.js",
}
ENTRIES = {"crelt": "index.js", "style-mod": "src/style-mod.js", "w3c-keyname": "index.js"}
ENTRIES |= {"@marijn/find-cluster-break": "src/index.js"}
MODULES |= {
    name: (f"{package}/{ENTRIES.get(package, 'dist/index.js')}", f"{package}/LICENSE")
    for package, name in PARTS.items()
}
IMPORT = re.compile(rb"""(?<=\bfrom )(["'])([@\w/.-]+)\1""")
# Its fonts lie beside it.
STYLE = "katex.css"
STYLE_SOURCE = "katex/dist/katex.min.css"
FONTS = "katex/dist"
# The maps stay behind, so nothing should ask for them.
SOURCE_MAP = re.compile(rb"\n//# sourceMappingURL=\S+\s*$")
# Every browser that has WebGPU reads the first of three kinds.
OTHER_FONTS = re.compile(rb',url\([^)]+\) format\("(?:woff|truetype)"\)')
FONT = re.compile(rb"url\((fonts/([^)]+\.woff2))\)")


class VendorError(UserError):
    """An error of a missing library; it says what to run."""


def collect(packages: Path = NODE_MODULES, vendor: Path = VENDOR) -> None:
    """Each module with its licence, without references to source maps; the style with its fonts."""
    for name, (module, licence) in MODULES.items():
        script = SOURCE_MAP.sub(b"\n", read(packages / module))
        write_whole(
            vendor / name, IMPORT.sub(_beside, script) if name in PARTS.values() else script
        )
        write_whole(vendor / name.replace(".js", "-licence.txt"), read(packages / licence))
    style = OTHER_FONTS.sub(b"", read(packages / STYLE_SOURCE))
    for path, name in FONT.findall(style):
        write_whole(vendor / name.decode(), read(packages / FONTS / path.decode()))
    write_whole(vendor / STYLE, FONT.sub(rb"url(\2)", style))


def _beside(found: re.Match[bytes]) -> bytes:
    """Return the import of a file beside, in the place of a package's name."""
    name = PARTS.get(found[2].decode())
    return f'"./{name}"'.encode() if name else found[0]


def read(path: Path) -> bytes:
    """VendorError where npm has not installed it."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise VendorError(f"{path} cannot be read: {error.strerror}. Run: npm ci") from error


if __name__ == "__main__":
    sys.exit(exit_status(collect))
