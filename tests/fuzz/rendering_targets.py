"""The page's rendering of strangers' texts: Markdown, maths, colours of code. Steps are counted.

Texts grow from the parts of a pattern of the page or of marked; rendering.mjs counts the steps that
patterns take. What is shown as it was written counts as refused.
"""

import json
import subprocess
from functools import cache
from random import Random
from typing import Any

from py_runtime.base.errors import InpageError
from tests.fuzz.driver import Target
from tools.files import ROOT

LANGUAGES = ("c", "cpp", "csharp", "graphql", "ini", "java", "markdown", "python", "typescript")
MARKDOWN = (
    "# Title\n\n*a* **b** `c`",
    "- one\n- two\n\n> three",
    "|a|b|\n|-|-|\n|1|2|",
    "[a](https://b.example)",
)
MATHS = ("so $x$ is", "$$\nx\n$$", r"\(a\) and \[b\]", "It costs $5, or $6.")
MAX_CODE = 19_000  # characters


class ShownAsWritten(InpageError):
    """A text that is too much to be rendered."""


@cache
def _renderer() -> "subprocess.Popen[str]":
    """Start what renders, once: an input is too short to pay for it."""
    command = ["node", "tests/fuzz/rendering.mjs"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)


def render(data: bytes) -> None:
    """Raise ShownAsWritten where a text is not rendered, AssertionError where it took long."""
    renderer = _renderer()
    assert renderer.stdin
    assert renderer.stdout
    renderer.stdin.write(f"{json.dumps(json.loads(data))}\n")
    renderer.stdin.flush()
    answer = json.loads(renderer.stdout.readline())
    assert "fault" not in answer, answer["fault"]
    if not answer["isRendered"]:
        raise ShownAsWritten("shown as it was written")


def inputs(kind: str, texts: tuple[str, ...], **fields: Any) -> list[bytes]:
    _renderer()  # now: an input's bounds of memory would be its own, too
    return [json.dumps({"kind": kind, "text": text, **fields}).encode() for text in texts]


def grow(rng: Random, base: bytes) -> bytes:
    """Return another input of its kind: which pattern comes first, and how texts grow from it."""
    kind = json.loads(base)["kind"]
    if rng.random() < 0.2:
        return json.dumps({"kind": kind, "text": rng.choice((">", "- ", "1. ")) * 1500}).encode()
    numbers = {"pattern": rng.randrange(10_000), "seed": rng.randrange(2**31)}
    return json.dumps({"kind": kind, **numbers}).encode()


def grow_code(rng: Random, base: bytes) -> bytes:
    """Return code that repeats what a pattern of its language takes, up to the longest allowed."""
    length = rng.choice((100, 1000, MAX_CODE))
    numbers = {"pattern": rng.randrange(10_000), "seed": rng.randrange(2**31), "length": length}
    return json.dumps({"kind": "code", "language": rng.choice(LANGUAGES), **numbers}).encode()


TARGETS = [
    Target("markdown", lambda: inputs("markdown", MARKDOWN), grow, render, count=20),
    Target("maths", lambda: inputs("maths", MATHS), grow, render, count=15),
    Target(
        "highlighting",
        lambda: inputs("code", ("def f():\n    return 1",), language="python"),
        grow_code,
        render,
        count=40,
    ),
]
