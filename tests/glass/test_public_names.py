"""The engine room's public names: `from inpage import glass`, as docs/glass.md shows them."""

import re

from inpage import glass
from tools.files import ROOT

NAMES = {"timeline", "graph_view", "op_view", "values_of", "memory_view", "kernel_lab"} | {
    *("replace", "own_op", "kernel_of", "Op")
}


def test_the_guide_names_what_there_is() -> None:
    guide = (ROOT / "docs/glass.md").read_text(encoding="utf-8")
    room = guide.partition("## Engine room")[2].partition("\n## ")[0]
    named = set(re.findall(r"\bglass\.(\w+)", room))
    assert named == NAMES
    assert set(glass.__all__) >= NAMES
    assert all(callable(getattr(glass, name)) for name in NAMES)
