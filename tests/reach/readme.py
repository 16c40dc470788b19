"""The README's section "Use it from…": its lines, with the toy in the default model's place."""

import re

from tests.toy_model import NAME
from tools.files import ROOT

DEFAULT = "SmolLM2-135M-Instruct"
SECTION = re.compile(r"^## Use it from…\n(.*?)^## ", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^\*\*([\w ]+)\*\*.*?^```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
GO_ON = re.compile(r"^Both then go on with `(async for .*)`\.$", re.MULTILINE)


def section() -> str:
    found = SECTION.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert found
    return found[1].replace(DEFAULT, NAME)


LINES: dict[str, str] = {name: code.strip() for name, code in LINE.findall(section())}


def go_on() -> str:
    """Return the line that Python's lines go on with."""
    found = GO_ON.search(section())
    assert found
    return briefly(found[1])


def briefly(code: str) -> str:
    """Make an answer short, and past any end: the toy's weights are random."""
    assert "}])" in code
    return code.replace("}])", "}], temperature=0, max_tokens=4, ignore_eos=True)", 1)
