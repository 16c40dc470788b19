"""A check that the scripts of web/ import each other in no circle, and nothing that is missing.

What is fetched only when it is needed counts like what is fetched at once; types in JSDoc do not.
"""

import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tools.errors import UserError, exit_status
from tools.files import ROOT

JSDOC = re.compile(r"/\*\*.*?\*/", re.DOTALL)
AT_ONCE = re.compile(r"""^(?:import|export)\b(?:[^;"'`]*\bfrom)?\s*["'](\.[^"']+)""", re.MULTILINE)
WHEN_NEEDED = re.compile(r"""\bimport\(\s*["'`](\.[^"'`]+)""")
COMPUTED = re.compile(r"\$\{[^}]*\}")


def imports_of(script: Path) -> set[Path]:
    """Find what a script imports, at once or when it is needed."""
    return _files_of(script, AT_ONCE, WHEN_NEEDED)


def static_imports_of(script: Path) -> set[Path]:
    """Find what a script imports at once."""
    return _files_of(script, AT_ONCE)


def _files_of(script: Path, *imports: re.Pattern[str]) -> set[Path]:
    """Return the files; where a part of a name is computed, all that it may be."""
    text = JSDOC.sub("", script.read_text(encoding="utf-8"))
    found = set()
    for name in (name for pattern in imports for name in pattern.findall(text)):
        files = [path.resolve() for path in script.parent.glob(COMPUTED.sub("*", name))]
        if not files:
            raise UserError(f"{script} imports {name}, which is not there")
        found.update(files)
    return found


def check(folder: Path) -> None:
    """Raise UserError, with the circle or with what is missing."""
    root = folder.resolve()
    scripts = {script: imports_of(script) for script in sorted(root.rglob("*.js"))}
    try:
        TopologicalSorter(scripts).prepare()
    except CycleError as error:
        circle = [path.relative_to(root).as_posix() for path in reversed(error.args[1])]
        raise UserError(f"scripts import each other in a circle: {' → '.join(circle)}") from None


if __name__ == "__main__":
    sys.exit(exit_status(lambda: check(ROOT / "web")))
