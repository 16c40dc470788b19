"""A check that no docstring starts in the middle of a sentence, as "Of its memory." does.

ruff's D rules ask for a verb in front of what a function does; they do not look at classes,
modules, properties and tests, and take some such words for verbs.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.errors import UserError, exit_status
from tools.files import ROOT

PLACES = ("bench", "examples", "export", "inpage", "py_runtime", "serve.py", "tests", "tools")
# They join a clause to another one, which a docstring does not have before it.
JOINING = re.compile(
    r"""\W*(?:
    also | although | and | as | at | because | before | beyond | but | by | during | either |
    except | for | from | how | if | in | inside | into | like | neither | nor | of | on | once
    | or | over | since | so | still | than | that | then | these | those | though | through |
    to | together | too | under | unless | until | up | what | whatever | when | whenever |
    where | wherever | whether | which | while | who | whoever | whom | whose | why | with |
    within | without | yet
    )(?![\w-])""",
    re.IGNORECASE | re.VERBOSE,
)
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def faults_in(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line of each docstring that starts with one of these words, and its first line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, Documented) and JOINING.match(text := ast.get_docstring(node) or ""):
            yield node.body[0].lineno, text.partition("\n")[0]


def python_files(root: Path, places: tuple[str, ...] = PLACES) -> Iterator[Path]:
    """Yield the project's own files, without what is installed or built inside its folders."""
    for place in places:
        path = root / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            inner = file.relative_to(root)
            if not any(part in ("build", "node_modules") or part[0] == "." for part in inner.parts):
                yield file


def check(root: Path, places: tuple[str, ...] = PLACES) -> None:
    """Raise UserError with a line for each docstring that starts so."""
    found = [
        f"{file.relative_to(root).as_posix()}:{line}: {text}"
        for file in python_files(root, places)
        for line, text in sorted(faults_in(file.read_text(encoding="utf-8")))
    ]
    if found:
        raise UserError(
            "\n".join(
                [
                    f"{len(found)} docstrings start in the middle of a sentence; begin with a verb "
                    'for what acts ("Return the …"), with a noun for what is:',
                    *found,
                ]
            )
        )


if __name__ == "__main__":
    sys.exit(exit_status(lambda: check(ROOT)))
