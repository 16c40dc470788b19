"""Templates, patterns and schemas, made of the pieces that such things are made of."""

import json
import re
from random import Random
from typing import Any

from tests.fuzz.documents import as_text, at, change_document, paths_in

# Templates ---------------------------------------------------------------------------------------

NAMES = ["messages", "message", "tools", "loop", "ns", "x", "i", "bos_token", "namespace", "none"]
ATOMS = [
    *("messages[0]", "message.content", "message['role']", "loop.index0", "loop.last", "ns.x"),
    *("'x'", "'%s'", "'{}'", "'<|a|>'", "''", "1", "0", "-1", "999999999", "1.5", "true", "[]"),
    *("{}", "[1, 2]", "{'a': 1}", "range(9)", "range(99999)", "namespace(x=1)", "cycler(1, 2)"),
    *("dict(a=1)", "strftime_now('%Y')", "raise_exception('no')", "lipsum()", "joiner()", "loop"),
    *("''.__class__", "messages.__init__", "x|attr('__class__')", "self", "caller()", "loop(x)"),
]
FILTERS = [
    *("length", "trim", "tojson", "list", "string", "upper", "join(',')", "first", "last", "int"),
    *("float", "sort", "unique", "reverse", "items", "map('string')", "map(attribute='role')"),
    *(
        "selectattr('role', 'equalto', 'user')",
        "groupby('role')",
        "default('x')",
        "replace('x', 'y')",
    ),
    *(
        "indent(4)",
        "center(80)",
        "batch(3)",
        "slice(3)",
        "sum",
        "round(2)",
        "format(1)",
        "dictsort",
    ),
    *("wordwrap(5)", "truncate(9)", "tojson(indent=99)", "min", "max", "random", "filesizeformat"),
    *(
        "center(999999999)",
        "indent(999999)",
        "replace('', 'x' * 9999)",
        "abs",
        "title",
        "wordcount",
    ),
]
METHODS = ["strip()", "split('x')", "upper()", "format(1)", "join([1])", "items()", "append(1)"]
METHODS += [
    "replace('x', 'y' * 99)",
    "ljust(99)",
    "encode()",
    "keys()",
    "get('role')",
    "count('x')",
]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "<", "in", "and", "or", "is", "not in"]
TESTS = ["defined", "string", "mapping", "none", "iterable", "divisibleby(3)", "sameas(x)", "odd"]


def expression(rng: Random, depth: int = 3) -> str:
    if depth == 0 or rng.random() < 0.3:
        return rng.choice([*ATOMS, *NAMES])
    inner = expression(rng, depth - 1)
    other = expression(rng, depth - 1)
    forms = [
        f"{inner} | {rng.choice(FILTERS)}",
        f"({inner}).{rng.choice(METHODS)}",
        f"({inner} {rng.choice(OPERATORS)} {other})",
        f"({inner} {rng.choice(OPERATORS)} {other})",
        f"({inner})[{other}]",
        f"({inner})[{other}:{rng.choice(['', '-1', '9'])}]",
        f"({inner} if {other} else x)",
        f"({inner} is {rng.choice(TESTS)})",
        f"[{inner}, {other}]",
        f"{{'a': {inner}, {other}: 1}}",
        f"f({inner})",
    ]
    return rng.choice(forms)


TAGS = ["{% break %}", "{% continue %}", "{# x #}", "{% include 'x' %}", "{% extends x %}"]
# Marks, for what a template is full of are braces: VALUE and FILTER stand in them, BODY between.
STATEMENTS = [
    "{{- VALUE }}",
    "{% set x = VALUE %}",
    "{% set ns.x = VALUE %}",
    "{% set ns = namespace(x=VALUE) %}",
    "{% for i in VALUE %}BODY{% endfor %}",
    "{% for message in messages %}BODY{% endfor %}",
    "{% for i in VALUE recursive %}BODY{{ loop(VALUE) }}{% endfor %}",
    "{% if VALUE %}BODY{% else %}y{% endif %}",
    "{% macro f(x) %}BODY{% endmacro %}{{ f(VALUE) }}",
    "{% set x %}BODY{% endset %}",
    "{% filter FILTER %}BODY{% endfilter %}",
    "{% call f(VALUE) %}BODY{% endcall %}",
    "{% with x = VALUE %}BODY{% endwith %}",
    "{% generation %}BODY{% endgeneration %}",
    "{% raw %}BODY{% endraw %}",
]


def statement(rng: Random, depth: int = 3) -> str:
    form = rng.choice([*STATEMENTS, rng.choice(TAGS)] if depth else [*STATEMENTS[:2], "text"])
    body = "".join(statement(rng, depth - 1) for _ in range(rng.randint(1, 2))) if depth else ""
    filled = form.replace("VALUE", expression(rng, 2)).replace("FILTER", rng.choice(FILTERS))
    return filled.replace("BODY", body)


def template(rng: Random, base: bytes) -> bytes:
    """Make a new template, or a model's own with statements in between or pieces gone."""
    if rng.random() < 0.5:
        return "".join(statement(rng) for _ in range(rng.randint(1, 4))).encode()
    parts = re.split(r"(\{[%{#].*?[%}#]\})", base.decode())
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(parts))
        parts[place] = rng.choice(["", parts[place] * 2, statement(rng, 2), rng.choice(parts)])
    return "".join(parts).encode()


# Patterns ----------------------------------------------------------------------------------------

PIECES = [
    *("a", "b", "ab", ".", r"\s", r"\S", r"\w", r"\d", r"\p{L}", r"\p{N}", r"\p{Lu}", r"\P{L}"),
    *(
        "[a-c]",
        "[^a]",
        r"[^\s\p{L}\p{N}]",
        r"[\r\n]",
        "[z-a]",
        "[]",
        "[a",
        "é",
        "💚",
        r"\x41",
        r"\1",
    ),
    *(
        r"\u0041",
        "^",
        "$",
        r"\b",
        r"\A",
        r"\z",
        "'s",
        "(?i:s|t)",
        "(?=a)",
        r"(?!\S)",
        "(?<=a)",
        "(?<n>a)",
    ),
]
REPEATS = [
    "*",
    "+",
    "?",
    "*?",
    "+?",
    "{2}",
    "{0,3}",
    "{2,}",
    "{1,9999}",
    "{99999999999}",
    "*+",
    "**",
]


def pattern(rng: Random, depth: int = 4) -> str:
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(PIECES)
    inner, other = pattern(rng, depth - 1), pattern(rng, depth - 1)
    repeated = f"(?:{inner}){rng.choice(REPEATS)}"
    forms = [
        f"{inner}{other}",
        f"{inner}|{other}",
        f"(?:{inner}|{other})",
        repeated,
        repeated + other,
    ]
    return rng.choice([*forms, f"({inner})", f"{rng.choice(PIECES)}{rng.choice(REPEATS)}{other}"])


# Schemas -----------------------------------------------------------------------------------------

TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
FORMATS = ["date", "time", "date-time", "email", "uuid", "ipv4", "hostname", "uri", "ipv6"]
SIZES = [0, 1, 2, 3, 10, 100, 20_000, 10**9, -1, 2.5]
BOUNDS = [0, 1, -1, 0.5, -1.25, 1e-9, 1e15, 123456, -(10**12), 10**20, 1e300]


def schema_part(rng: Random, depth: int = 3) -> Any:
    """Make a small schema, with keywords that need not go together."""
    found: dict[str, Any] = {}
    for _ in range(rng.randint(1, 3)):
        keyword = rng.choice(list(_simple(rng)) + (_COMBINED if depth else []))
        found[keyword] = (
            _combined(rng, keyword, depth - 1) if keyword in _COMBINED else _simple(rng)[keyword]
        )
    return rng.choice([found, found, found, found, True, False])


def _simple(rng: Random) -> dict[str, Any]:
    return {
        "type": rng.choice([*TYPES, rng.sample(TYPES, 2)]),
        "enum": rng.sample([None, 1, -2.5, "a", "ab", "é", [], {"a": 1}, 1.0, "1", True], 3),
        "const": rng.choice([None, 1, 1.0, "x", [1], {"a": []}]),
        "pattern": pattern(rng),
        "format": rng.choice(FORMATS),
        **{name: rng.choice(SIZES) for name in ("minLength", "maxLength", "minItems", "maxItems")},
        **{name: rng.choice(BOUNDS) for name in ("minimum", "maximum", "exclusiveMinimum")},
        "$ref": rng.choice(["#", "#/$defs/a", "#/$defs/node", "#/items", "#/properties/a", "#//"]),
        "required": rng.sample(["a", "b", "name", "value", ""], 2),
    }


_COMBINED = ["properties", "items", "prefixItems", "anyOf", "oneOf", "allOf", "$defs"]
_COMBINED += ["additionalProperties"]


def _combined(rng: Random, keyword: str, depth: int) -> Any:
    parts = [schema_part(rng, depth) for _ in range(rng.choice([1, 2, 2, 3, 12]))]
    if keyword in ("properties", "$defs"):
        return dict(zip("abcdefghijkl", parts, strict=False))
    return parts[0] if keyword in ("items", "additionalProperties") else parts


def schema(rng: Random, base: bytes) -> bytes:
    """Make a new schema, or one that people use with other parts in it, or one that lies."""
    document = json.loads(base)
    kind = rng.random()
    if kind < 0.3:
        document = schema_part(rng)
    elif kind < 0.7:
        paths = paths_in(document)
        if paths:
            *outer, key = rng.choice(paths)
            holder = at(document, tuple(outer))
            holder[key] = schema_part(rng, 2)
    else:
        document = change_document(rng, document)
    return as_text(rng, document)
