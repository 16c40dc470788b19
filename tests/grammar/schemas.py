"""Schemas as people write them, each with values that fit it."""

# ruff: noqa: RUF001 (Greek letters are meant)

from typing import Any

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 40},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "email": {"type": "string", "format": "email"},
        "married": {"type": "boolean"},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "value": {"type": "integer"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 3},
            },
            "required": ["value", "children"],
            "additionalProperties": False,
        }
    },
    "$ref": "#/$defs/node",
}
TOOL_CALL = {
    "type": "object",
    "properties": {
        "calls": {
            "type": "array",
            "minItems": 1,
            "items": {
                "oneOf": [
                    {
                        "type": "object",
                        "properties": {
                            "tool": {"const": "weather"},
                            "city": {"type": "string"},
                            "unit": {"enum": ["celsius", "fahrenheit"]},
                        },
                        "required": ["tool", "city"],
                        "additionalProperties": False,
                    },
                    {
                        "type": "object",
                        "properties": {
                            "tool": {"const": "search"},
                            "query": {"type": "string", "maxLength": 60},
                            "limit": {"type": "integer", "minimum": 1, "maximum": 50},
                        },
                        "required": ["tool", "query", "limit"],
                        "additionalProperties": False,
                    },
                ]
            },
        }
    },
    "required": ["calls"],
    "additionalProperties": False,
}
ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "pattern": "^[A-Z]{2}-\\d{4,6}$"},
        "placed": {"type": "string", "format": "date-time"},
        "lines": {
            "type": "array",
            "minItems": 1,
            "maxItems": 4,
            "items": {
                "type": "object",
                "properties": {
                    "article": {"type": "string", "maxLength": 20},
                    "count": {"type": "integer", "exclusiveMinimum": 0, "maximum": 999},
                    "price": {"type": "number", "minimum": 0.01, "exclusiveMaximum": 10000},
                },
                "required": ["article", "count", "price"],
                "additionalProperties": False,
            },
        },
        "status": {"enum": ["open", "paid", "sent"]},
    },
    "required": ["id", "placed", "lines", "status"],
    "additionalProperties": False,
}
LINKED_LIST = {
    "type": "object",
    "properties": {
        "head": {"type": "number"},
        "tail": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
    },
    "required": ["head", "tail"],
}
ANIMALS = {
    "$defs": {
        "named": {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        },
        "cat": {
            "allOf": [
                {"$ref": "#/$defs/named"},
                {"properties": {"lives": {"type": "integer", "minimum": 1}}, "required": ["lives"]},
                {"properties": {"lives": {"maximum": 9}}},
            ]
        },
    },
    "type": "array",
    "items": {"anyOf": [{"$ref": "#/$defs/cat"}, {"$ref": "#/$defs/named"}]},
    "maxItems": 3,
}
FORMATS = ("date", "time", "date-time", "email", "uuid", "ipv4", "hostname", "uri")

# name → schema and values that fit
SCHEMAS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "person": (
        PERSON,
        [
            {"name": "Ada", "age": 36},
            {"name": 'Ann "Nan" O\\Neill\n', "age": 0, "email": "ann@example.org", "married": True},
            {"name": "Зоя 💚 ﷽", "age": 130, "married": False},
        ],
    ),
    "empty object": ({"type": "object", "properties": {}, "additionalProperties": False}, [{}]),
    "any value": ({}, [None, 1.5e-9, [], {"a": [{"b": {}}]}, "x", [True, [[]]], -0.25, 12]),
    "any object": ({"type": "object"}, [{}, {"a": 1}, {"": {"": ""}}, {"k\u20ac": [1, 2, "3"]}]),
    "tree": (
        TREE,
        [
            {"value": -7, "children": []},
            {"value": 1, "children": [{"value": 2, "children": []}] * 3},
            {"value": 1, "children": [{"value": 10, "children": [{"value": 3, "children": []}]}]},
        ],
    ),
    "linked list": (
        LINKED_LIST,
        [{"head": 1, "tail": None}, {"head": 1.5, "tail": {"head": 2e200, "tail": None}}],
    ),
    "tool calls": (
        TOOL_CALL,
        [
            {"calls": [{"tool": "weather", "city": "Łódź"}]},
            {
                "calls": [
                    {"tool": "search", "query": "tea {}", "limit": 50},
                    {"tool": "weather", "city": "", "unit": "celsius"},
                ]
            },
        ],
    ),
    "order": (
        ORDER,
        [
            {
                "id": "AB-12345",
                "placed": "2024-02-29T23:59:59.5+01:00",
                "lines": [{"article": "tea", "count": 1, "price": 0.01}],
                "status": "paid",
            },
            {
                "id": "ZZ-0000",
                "placed": "1999-12-31T00:00:00Z",
                "lines": [{"article": "", "count": 999, "price": 9999.99}] * 4,
                "status": "open",
            },
        ],
    ),
    "allOf": (ANIMALS, [[], [{"name": "Tom"}, {"name": "Kit", "lives": 9}]]),
    "enum of all sorts": (
        {"enum": ["a", "ab", "", "é\n", 1, -2.5, True, None, [], [1, {"x": []}], {"a": {"b": 2}}]},
        ["a", "ab", "", "é\n", 1, -2.5, True, None, [], [1, {"x": []}], {"a": {"b": 2}}],
    ),
    "const": ({"const": {"version": 1, "tags": ["x"]}}, [{"version": 1, "tags": ["x"]}]),
    "lists of types": (
        {"type": ["integer", "null", "string"], "maximum": 10, "minLength": 2},
        [10, -1000, None, "ab", "abc"],
    ),
    "tuple": (
        {
            "type": "array",
            "prefixItems": [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}],
            "items": False,
            "minItems": 2,
        },
        [["a", 1], ["", -3, True]],
    ),
    "tuple with others": (
        {
            "prefixItems": [{"const": "rgb"}],
            "items": {"type": "integer", "minimum": 0, "maximum": 255},
            "minItems": 4,
            "maxItems": 5,
        },
        [["rgb", 0, 255, 10], ["rgb", 199, 200, 249, 250]],
    ),
    "matrix": (
        {
            "type": "array",
            "minItems": 2,
            "maxItems": 2,
            "items": {"type": "array", "minItems": 2, "maxItems": 3, "items": {"type": "number"}},
        },
        [[[1, 2], [3.5, -4e10]], [[0, 0, 0], [1e-7, -0.5, 123456]]],
    ),
    "bounded integers": (
        {
            "type": "array",
            "items": {"type": "integer", "minimum": -120, "exclusiveMaximum": 1_000_007},
        },
        [[-120, -99, -1, 0, 7, 10, 999_999, 1_000_006]],
    ),
    "bounded numbers": (
        {"type": "array", "items": {"type": "number", "exclusiveMinimum": -1.25, "maximum": 0.5}},
        [[-1.2499, -1, -0.001, 0, 0.5, 0.49999, 0.5]],
    ),
    "positive numbers": (
        {"type": "array", "items": {"type": "number", "exclusiveMinimum": 0}, "minItems": 1},
        [[0.001, 1, 17.25, 123456789.5]],
    ),
    "patterns": (
        {
            "type": "object",
            "properties": {
                "plate": {"type": "string", "pattern": "^[A-Z]{1,3}-[A-Z]{1,2} [1-9][0-9]{0,3}$"},
                "slug": {
                    "type": "string",
                    "pattern": "^[a-z0-9]+(?:-[a-z0-9]+)*$",
                    "maxLength": 30,
                },
                "found": {"type": "string", "pattern": "needle|^pin$"},
                "greek": {"type": "string", "pattern": "^[α-ωά-ώ ]*$", "minLength": 3},
                "colour": {"type": "string", "pattern": "^#([0-9a-f]{3}|[0-9a-f]{6})$"},
            },
            "required": ["plate", "slug", "found", "greek", "colour"],
        },
        [
            {
                "plate": "B-AB 1234",
                "slug": "a-quick-fox-7",
                "found": "a needle in hay",
                "greek": "καλημέρα κόσμε",
                "colour": "#0af",
            },
            {"plate": "ABC-D 1", "slug": "x", "found": "pin", "greek": "   ", "colour": "#abcdef"},
        ],
    ),
    "formats": (
        {
            "type": "object",
            "properties": {name: {"type": "string", "format": name} for name in FORMATS},
            "required": list(FORMATS),
        },
        [
            {
                "date": "2000-02-29",
                "time": "23:59:59Z",
                "date-time": "2024-04-30T12:00:00.123-08:00",
                "email": "jo.bloggs+x@mail.example.com",
                "uuid": "123e4567-e89b-12d3-a456-426614174000",
                "ipv4": "192.168.0.255",
                "hostname": "www.example.org",
                "uri": "https://example.org/a/b?q=1#top",
            }
        ],
    ),
    "dictionary": (
        {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}},
        [{}, {"a": [], "b c": [1, 2]}, {"ключ": [0], 'quote " inside': [], "\n": [5]}],
    ),
    "named and other properties": (
        {
            "type": "object",
            "properties": {"name": {"type": "string"}, "nap": {"type": "boolean"}},
            "required": ["name", "id"],
            "additionalProperties": {"type": "integer"},
        },
        [{"name": "x", "id": 1}, {"name": "x", "nap": True, "id": 1, "na": 2, "names": 3, "é": 4}],
    ),
    "optional properties": (
        {
            "type": "object",
            "properties": {f"p{index}": {"type": "integer"} for index in range(12)},
            "required": ["p6"],
        },
        [{"p6": 1}, {"p0": 0, "p1": 1, "p6": 6, "p11": 11}, {"p5": 1, "p6": 2, "p10": 3}],
    ),
    "unions": (
        {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {"ok": {"const": True}, "value": {"type": "number"}},
                    "required": ["ok", "value"],
                },
                {
                    "type": "object",
                    "properties": {"ok": {"const": False}, "error": {"type": "string"}},
                    "required": ["ok", "error"],
                },
                {"type": "array", "items": {"type": "string", "maxLength": 3}},
                {"type": "string", "maxLength": 5},
            ]
        },
        [{"ok": True, "value": 0}, {"ok": False, "error": "no"}, ["a", "abc"], "12345"],
    ),
    "oneOf by type and range": (
        {
            "oneOf": [
                {"type": "string"},
                {"type": "integer", "maximum": 0},
                {"type": "integer", "minimum": 5},
                {"type": "null"},
            ]
        },
        ["s", 0, -12, 5, 1234, None],
    ),
    "long texts": (
        {
            "type": "object",
            "properties": {"text": {"type": "string", "minLength": 30, "maxLength": 2_000_000_000}},
            "required": ["text"],
        },
        [{"text": "All human beings are born free and equal in dignity and rights. " * 4}],
    ),
    "names that need escapes": (
        {
            "type": "object",
            "properties": {
                'a"b': {"type": "null"},
                "back\\slash": {"type": "null"},
                "naïve 🙂": {"type": "null"},
            },
            "required": ['a"b', "naïve 🙂"],
        },
        [{'a"b': None, "naïve 🙂": None}, {'a"b': None, "back\\slash": None, "naïve 🙂": None}],
    ),
    "mutual recursion": (
        {
            "$defs": {
                "expression": {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/operation"}]},
                "operation": {
                    "type": "object",
                    "properties": {
                        "operator": {"enum": ["+", "-", "*", "/"]},
                        "operands": {
                            "type": "array",
                            "items": {"$ref": "#/$defs/expression"},
                            "minItems": 2,
                            "maxItems": 2,
                        },
                    },
                    "required": ["operator", "operands"],
                    "additionalProperties": False,
                },
            },
            "$ref": "#/$defs/operation",
        },
        [
            {"operator": "+", "operands": [1, 2]},
            {"operator": "*", "operands": [{"operator": "-", "operands": [3, -4]}, 5]},
        ],
    ),
    "annotations": (
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Reply",
            "description": "What was said.",
            "type": "object",
            "properties": {
                "reply": {
                    "type": "string",
                    "description": "the words",
                    "default": "",
                    "examples": ["hi"],
                }
            },
            "required": ["reply"],
            "additionalProperties": False,
        },
        [{"reply": "hello"}],
    ),
}
