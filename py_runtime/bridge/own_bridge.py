"""The bridge for bare Pyodide and notebooks, where no worker of ours has registered it.

The wheel has its JavaScript (web/bridge.js and what that imports) beside this file. A module in a
blob finds nothing beside itself, so each import and each worker gets the address of another blob.
"""

import re
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

NAME = "inpage_bridge"
SOURCES = Path(__file__).parent / "js"
IMPORTED = re.compile(r'(?:(?<=from )|(?<=await import\()|(?<=new URL\())"(\.[\w./]+\.js)"')
JOIN = """async (address, pyodide, name) => {
  const { createBridge } = await import(address);
  const bridge = createBridge();
  bridge.attachHeap(() => pyodide._module.HEAPU8.buffer);
  pyodide.registerJsModule(name, { bridge });
}"""


async def bring_bridge() -> None:
    """Register the bridge once, so that py_runtime.bridge.calls can be imported."""
    if NAME in sys.modules or find_spec(NAME) is not None:
        return
    import pyodide_js
    from pyodide.code import run_js

    await run_js(JOIN)(blob_address_of(SOURCES / "bridge.js"), pyodide_js, NAME)


@cache
def blob_address_of(module: Path) -> str:
    """Make a blob of a module, whose imports are blobs, too, and return its address."""
    from js import URL, Blob, Object
    from pyodide.ffi import to_js

    def joined(match: re.Match[str]) -> str:
        return f'"{blob_address_of((module.parent / match[1]).resolve())}"'

    source = IMPORTED.sub(joined, module.read_text(encoding="utf-8"))
    kind = to_js({"type": "text/javascript"}, dict_converter=Object.fromEntries)
    return str(URL.createObjectURL(Blob.new(to_js([source]), kind)))
