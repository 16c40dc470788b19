"""The page's wording as its files have it: in index.html, in t`…` of its scripts, in the tables."""

import json
import re
import subprocess
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from tools.files import ROOT

WEB = ROOT / "web"
TABLES = WEB / "ui" / "languages"
SHOWN_ATTRIBUTES = ("aria-label", "placeholder", "title")
# Somebody else's words, or code.
NOT_OURS = ("code", "pre", "script", "style")
IN_LETTERS = re.compile(r"[^\W\d_]{2}")
PLACEHOLDER = re.compile(r"\{\d\}")
OWN_CODE = re.compile(r'\{ code: "(\w+)", facts:')
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
    """Return {"texts": …, "messages": …} of a language."""
    path = json.dumps((TABLES / f"{name}.js").as_uri())
    found: dict[str, dict[str, str]] = in_node(f"return import({path})")
    return found


def codes_of_the_page() -> set[str]:
    """Return the codes of messages that the page makes itself."""
    in_scripts = {code for path in scripts() for code in OWN_CODE.findall(path.read_text())}
    shelf = json.loads((WEB / "shelf.json").read_text())
    return in_scripts | {entry["good_at"] for entry in shelf}


# What wording.js asks of a page. This one holds texts alone, each in a node of its own.
SMALL_PAGE = """
globalThis.NodeFilter = {};
globalThis.nodes = [];
globalThis.localStorage = { getItem: () => language };
Object.defineProperty(globalThis, "navigator", { value: { languages: [] } });
globalThis.document = {
    documentElement: { dataset: {} }, readyState: "complete", addEventListener() {},
    querySelectorAll: () => [],
    createTreeWalker() {
        let at = -1;
        return { nextNode: () => ++at < nodes.length, get currentNode() { return nodes[at]; } };
    },
};
globalThis.show = (...texts) => {
    nodes = texts.map((data) => ({ data, parentElement: { closest: () => null } }));
};
globalThis.shown = () => nodes.map(({ data }) => data);
"""


def worded(language: str, messages: list[Any]) -> list[str | None]:
    """Return the engine's messages as a page of this language shows them."""
    found: list[str | None] = in_page(
        language, f"return {json.dumps(messages)}.map((message) => tell(message) ?? null);"
    )
    return found


def in_page(language: str, code: str) -> Any:
    """Run code with what wording.js exports, in a page of this language."""
    path = json.dumps((WEB / "ui" / "wording.js").as_uri())
    head = f"const language = {json.dumps(language)};\n{SMALL_PAGE}"
    return in_node(
        f"{head} const {{ faultOf, inWords, speak, t, tell }} = await import({path}); {code}"
    )


def in_node(code: str) -> Any:
    """Return what code gives, which goes through JSON."""
    script = f"const run = async () => {{ {code} }};\nconsole.log(JSON.stringify(await run()));"
    command = ["node", "--input-type=module", "-e", script]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(result.stdout)
