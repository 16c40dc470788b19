"""JSON that lies: other values, kinds and names, what no parser should take, too much of it all."""

import json
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

from tests.fuzz.damage import damage_bytes

Path = tuple[Any, ...]
Change = Callable[[Random, Any], Any]

VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 16, 255, 2**31 - 1, 2**31, 2**32, 2**53, 2**63, 2**64),
    *(-(2**31), -(2**63), 0.5, -0.0, 1e-320, 1e308, 1.0, 1e16),
    *(
        "",
        " ",
        "a",
        "F32",
        "I64",
        "U8",
        "../x",
        "a/b",
        "\0",
        "\n",
        "é",
        "💚",
        "\ud800",
        "id",
        "type",
    ),
    *(
        [],
        {},
        [[]],
        [{}],
        {"": {}},
        [0],
        [-1],
        ["a"],
        {"a": 1},
        [None],
        [1, 2, 3, 4, 5, 6, 7, 8, 9],
    ),
]
# What only a text can say: a mark in the document is replaced by one of these.
MARK = "<a text of its own>"
TEXTS: list[Callable[[Random], str]] = [
    lambda rng: "NaN",
    lambda rng: "-Infinity",
    lambda rng: "1e999",
    lambda rng: "-0",
    lambda rng: "9" * rng.choice([19, 309, 4300, 4301, 50_000]),
    lambda rng: "1." + "0" * 400 + "1",
    lambda rng: _nested(rng, "[", "]"),
    lambda rng: _nested(rng, '{"a":', "}"),
    lambda rng: '"' + "x" * rng.choice([300, 70_000]) + '"',
    lambda rng: "[" + ",".join(["0"] * rng.choice([300, 20_000])) + "]",
    lambda rng: '{"a": 1, "a": 2}',
    lambda rng: '"\\ud83d"',
    lambda rng: '"\\udc00\\ud800"',
    lambda rng: "",
    lambda rng: "//",
]


def _nested(rng: Random, begin: str, end: str) -> str:
    depth = rng.choice([20, 200, 1000, 100_000])
    return begin * depth + "0" + end * depth


def make_lie(rng: Random, base: bytes) -> bytes:
    """Return a document with one to three changes; now and then damaged as bytes are."""
    return as_text(rng, change_document(rng, json.loads(base)))


def as_text(rng: Random, document: Any) -> bytes:
    text = json.dumps(document)
    while json.dumps(MARK) in text:
        text = text.replace(json.dumps(MARK), rng.choice(TEXTS)(rng), 1)
    if rng.random() < 0.05:
        text = _double_a_key(rng, text)
    data = text.encode()
    return damage_bytes(rng, data) if rng.random() < 0.1 else data


def change_document(rng: Random, document: Any) -> Any:
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        document = rng.choice(CHANGES)(rng, document)
    return document


def _double_a_key(rng: Random, text: str) -> str:
    begins = [at for at, sign in enumerate(text) if sign == "{"]
    if not begins:
        return text
    at = rng.choice(begins) + 1
    pair = text[at : text.find(",", at)]
    return f"{text[:at]}{pair},{text[at:]}" if ":" in pair else text


# Changes -----------------------------------------------------------------------------------------


def paths_in(value: Any, path: Path = ()) -> list[Path]:
    """Return the paths of all values in a document, inner ones too."""
    found = [path] if path else []
    inner = enumerate(value) if isinstance(value, list) else ()
    for key, item in value.items() if isinstance(value, dict) else inner:
        found += paths_in(item, (*path, key))
    return found


def at(document: Any, path: Path) -> Any:
    for step in path:
        document = document[step]
    return document


def replace_value(rng: Random, document: Any) -> Any:
    return _put(rng, document, lambda old: deepcopy(rng.choice(VALUES)))


def nudge(rng: Random, document: Any) -> Any:
    """Almost what it was."""

    def other(old: Any) -> Any:
        if isinstance(old, bool) or old is None:
            return not old
        if isinstance(old, int | float):
            return rng.choice([old + 1, old - 1, -old, old * 2, float(old), str(old), [old]])
        if isinstance(old, str):
            return rng.choice([old + "x", old[:-1], old[::-1], old * 3, old.upper(), [old]])
        return list(old.values()) if isinstance(old, dict) else dict.fromkeys(map(str, old), 0)

    return _put(rng, document, other)


def copy_from_elsewhere(rng: Random, document: Any) -> Any:
    paths = paths_in(document)
    source = at(document, rng.choice(paths)) if paths else None
    return _put(rng, document, lambda old: deepcopy(source))


def mark(rng: Random, document: Any) -> Any:
    return _put(rng, document, lambda old: MARK)


def drop(rng: Random, document: Any) -> Any:
    paths = paths_in(document)
    if paths:
        *outer, key = rng.choice(paths)
        del at(document, tuple(outer))[key]
    return document


def rename(rng: Random, document: Any) -> Any:
    """Give a key another name, perhaps that of a key elsewhere."""
    objects = [found for path in [(), *paths_in(document)] if _is_full(found := at(document, path))]
    if objects:
        holder, names = rng.choice(objects), [key for found in objects for key in found]
        key = rng.choice(list(holder))
        holder[rng.choice([*names, "", "x", "__proto__", key + " "])] = holder.pop(key)
    return document


def repeat(rng: Random, document: Any) -> Any:
    """Repeat an item of a list many times over."""
    lists = [path for path in paths_in(document) if isinstance(at(document, path), list)]
    if lists:
        items = at(document, rng.choice(lists))
        item = rng.choice(items) if items else 0
        items += [deepcopy(item) for _ in range(rng.choice([1, 1, 2, 10, 500]))]
        if rng.random() < 0.3:
            rng.shuffle(items)
    return document


def add(rng: Random, document: Any) -> Any:
    if isinstance(document, dict):
        document[rng.choice(["x", "", "type", "a" * 300])] = deepcopy(rng.choice(VALUES))
    return document


CHANGES: list[Change] = [
    *[replace_value] * 5,
    *[nudge] * 3,
    *[copy_from_elsewhere] * 2,
    mark,
    drop,
    rename,
    repeat,
    add,
]


def _put(rng: Random, document: Any, other: Callable[[Any], Any]) -> Any:
    paths = paths_in(document)
    if not paths:
        return other(document)
    *outer, key = rng.choice(paths)
    holder = at(document, tuple(outer))
    holder[key] = other(holder[key])
    return document


def _is_full(value: Any) -> bool:
    return isinstance(value, dict) and bool(value)
