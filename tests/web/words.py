"""The page's words as its files have them: in index.html, in t`…` of its scripts, in the tables."""

import json
import re
import subprocess
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

from tools.files import ROOT

WEB = ROOT / "web"
TABLES = WEB / "ui" / "words"
SHOWN_ATTRIBUTES = ("aria-label", "placeholder", "title")
# Somebody else's words, or code.
NOT_OURS = ("code", "pre", "script", "style")
IN_LETTERS = re.compile(r"[^\W\d_]{2}")
PLACEHOLDER = re.compile(r"\{\d\}")
TAGGED = re.compile(r"(?<![\w.$])t`")
NOT_CLOSED = ("img", "input", "link", "meta", "br", "use", "path", "rect", "circle")


class PageText(HTMLParser):
    """Text nodes and attributes that people meet."""

    def __init__(self) -> None:
        super().__init__()
        self.words: set[str] = set()
        self._open: list[bool] = []  # the elements around: are their words ours?

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        for name in SHOWN_ATTRIBUTES:
            self._take(given.get(name) or "")
        is_foreign = tag in NOT_OURS or ("lang" in given and tag != "html")
        if tag not in NOT_CLOSED:
            self._open.append(not is_foreign and all(self._open[-1:]))

    def handle_endtag(self, tag: str) -> None:
        if tag not in NOT_CLOSED:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if all(self._open[-1:]):
            self._take(data)

    def _take(self, text: str) -> None:
        text = " ".join(text.split())
        if IN_LETTERS.search(text):
            self.words.add(text)


def of_html() -> set[str]:
    parser = PageText()
    parser.feed((WEB / "index.html").read_text())
    return parser.words


def of_scripts() -> set[str]:
    """Return the keys of every t`…`, with {0}, {1}, … for what is put in."""
    return {key for path in scripts() for key in keys_of(path.read_text())}


def scripts() -> list[Path]:
    return [path for path in sorted(WEB.rglob("*.js")) if TABLES not in path.parents]


def keys_of(script: str) -> list[str]:
    found = []
    for begin in TAGGED.finditer(script):
        key, at, values = "", begin.end(), 0
        while script[at] != "`":
            if script.startswith("${", at):
                key, at, values = f"{key}{{{values}}}", end_of_value(script, at + 2), values + 1
            else:
                key, at = key + script[at], at + 1
        found.append(key)
    return found


def end_of_value(script: str, at: int) -> int:
    """Behind the brace that closes a ${…}, with templates inside it."""
    depth, templates = 1, 0
    while depth:
        templates += script[at] == "`"
        depth += {"{": 1, "}": -1}.get(script[at], 0)
        at += 1
    assert templates % 2 == 0, f"a template that is not closed: {script[at - 40 : at]!r}"
    return at


@cache
def table(name: str) -> dict[str, dict[str, str]]:
    """{"words": …, "said": …} of a language."""
    path = json.dumps((TABLES / f"{name}.js").as_uri())
    code = f"import({path}).then(table => console.log(JSON.stringify(table)))"
    result = subprocess.run(["node", "-e", code], capture_output=True, text=True, check=True)
    found: dict[str, dict[str, str]] = json.loads(result.stdout)
    return found


# What translating.js asks of a page, which is empty here.
EMPTY_PAGE = """
globalThis.NodeFilter = {};
globalThis.document = {
    readyState: "complete", addEventListener() {}, querySelectorAll: () => [],
    createTreeWalker: () => ({ nextNode: () => null }),
};
"""


def retold(tag: str, texts: list[str]) -> list[str]:
    """Texts of the engine as a page of this language shows them."""
    path = json.dumps((WEB / "ui" / "translating.js").as_uri())
    code = f"""{EMPTY_PAGE}
    const {{ translate }} = await import({path});
    const {{ retell }} = await translate({json.dumps(tag)});
    console.log(JSON.stringify({json.dumps(texts)}.map(retell)));"""
    command = ["node", "--input-type=module", "-e", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    found: list[str] = json.loads(result.stdout)
    return found
