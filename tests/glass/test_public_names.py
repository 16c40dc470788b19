"""The public names: `from inpage import glass`, and what docs/glass.md shows of it."""

import re

import pytest

from inpage import glass
from tools.files import ROOT

GUIDE = (ROOT / "docs/glass.md").read_text(encoding="utf-8")


def test_every_name_is_there() -> None:
    assert dir(glass) == sorted(glass.PLACES)
    for name in glass.PLACES:
        assert callable(getattr(glass, name)), name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        glass.nothing  # noqa: B018


def test_the_guide_names_what_there_is() -> None:
    room = GUIDE.partition("## Engine room")[2]
    named = set(re.findall(r"\bglass\.(\w+)", room)) - {"md"}
    assert named == set(glass.PLACES)
