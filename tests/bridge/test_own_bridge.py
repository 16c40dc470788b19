"""The bridge that is brought along: none of its imports may lead beside its blob."""

import re

from py_runtime.bridge.own_bridge import IMPORTED
from tools.files import ROOT

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
SCRIPT = re.compile(r"""["'`]([^"'`\n]+\.js)["'`]""")  # in quotes, however it is imported


def test_every_import_of_the_bridge_is_found() -> None:
    imports = 0
    for path in [ROOT / "web/bridge.js", *(ROOT / "web/bridge").glob("*.js")]:
        code = COMMENT.sub("", path.read_text(encoding="utf-8"))
        found = [match[1] for match in IMPORTED.finditer(code)]
        assert found == SCRIPT.findall(code), path.name
        for script in found:
            assert (path.parent / script).resolve().is_relative_to(ROOT / "web/bridge"), script
            assert (path.parent / script).is_file(), script
        imports += len(found)
    assert imports >= 10
