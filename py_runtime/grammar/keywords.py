"""The keywords of JSON Schema: which are known, which are only annotations, what they may hold."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from py_runtime.base.short_texts import short
from py_runtime.grammar.limits import MAX_QUOTED, MAX_SHORTEST, refuse

ANNOTATIONS = frozenset(
    ["$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default",
     "examples", "example", "deprecated", "readOnly", "writeOnly", "contentMediaType",
     "contentEncoding"]
)  # fmt: skip
COMBINING = frozenset(["$ref", "allOf", "anyOf", "oneOf"])
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
# Keywords that speak of one type only; without "type" they are taken to ask for it.
TYPE_OF = {
    "properties": "object", "required": "object", "additionalProperties": "object",
    "items": "array", "prefixItems": "array", "minItems": "array", "maxItems": "array",
    "minLength": "string", "maxLength": "string", "pattern": "string", "format": "string",
    "minimum": "number", "maximum": "number", "exclusiveMinimum": "number",
    "exclusiveMaximum": "number",
}  # fmt: skip
_NO_OPS = {"uniqueItems": False, "minProperties": 0, "nullable": False, "minContains": 0}


@dataclass(frozen=True)
class SchemaPart:
    """A schema, and where it stands."""

    schema: Any
    path: str

    def inside(self, *keys: str | int) -> "SchemaPart":
        schema, path = self.schema, self.path
        for key in keys:
            schema, path = schema[key], f"{path}/{key}"
        return SchemaPart(schema, path)


@dataclass(frozen=True, eq=False)
class Atom:
    """The keywords of one schema that are neither annotations nor combine others."""

    part: SchemaPart
    keywords: dict[str, Any]

    def get(self, keyword: str) -> Any:
        return self.keywords.get(keyword)

    def inside(self, *keys: str | int) -> SchemaPart:
        return self.part.inside(*keys)


def read_atom(part: SchemaPart) -> Atom:
    """Refuses whatever is unknown or not of the right kind."""
    keywords: dict[str, Any] = {}
    for keyword, value in part.schema.items():
        if keyword in ANNOTATIONS or keyword in COMBINING:
            continue
        if keyword in _NO_OPS and value is not None and value == _NO_OPS[keyword]:
            continue
        check = CHECKS.get(keyword)
        if check is None:
            raise refuse(f"the keyword {short(keyword, MAX_QUOTED)} is not supported", part.path)
        fault = check(value)
        if fault:
            raise refuse(f"{keyword} is {short(value, MAX_QUOTED)}, not {fault}", part.path)
        keywords[keyword] = value
    return Atom(part, keywords)


def types_of(value: Any) -> list[str]:
    """Return the types of a value; every integer is a number, too."""
    match value:
        case None:
            return ["null"]
        case bool():
            return ["boolean"]
        case int():
            return ["integer", "number"]
        case float():
            return ["integer", "number"] if value.is_integer() else ["number"]
        case str():
            return ["string"]
        case list():
            return ["array"]
    return ["object"]


def decimal(value: float) -> Decimal:
    """Return the number with the digits that the schema writes."""
    return Decimal(repr(value))


def _schema(value: Any) -> str | None:
    return None if isinstance(value, dict | bool) else "a schema"


def _schemas_by_name(value: Any) -> str | None:
    good = isinstance(value, dict) and not any(map(_schema, value.values()))
    return None if good else "an object of schemas"


def _schemas(value: Any) -> str | None:
    good = isinstance(value, list) and value and not any(map(_schema, value))
    return None if good else "a list of schemas"


def _names(value: Any) -> str | None:
    good = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return None if good else "a list of names"


def _count(value: Any) -> str | None:
    return None if type(value) is int and value >= 0 else "a whole number from 0 on"


def _least(value: Any) -> str | None:
    good = type(value) is int and 0 <= value <= MAX_SHORTEST
    return None if good else f"a whole number from 0 to {MAX_SHORTEST}"


def _number(value: Any) -> str | None:
    return None if type(value) in (int, float) else "a number"


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) else "a text"


def _type(value: Any) -> str | None:
    listed = value if isinstance(value, list) and value else [value]
    good = all(isinstance(each, str) and each in TYPES for each in listed)
    return None if good else f"one of {', '.join(TYPES)}, nor a list of them"


def _values(value: Any) -> str | None:
    return None if isinstance(value, list) and value else "a list of values"


def _items(value: Any) -> str | None:
    fault = _schema(value)
    return f"{fault} (for items by their place use prefixItems)" if fault else None


def _anything(value: Any) -> str | None:
    return None


CHECKS: dict[str, Callable[[Any], str | None]] = {
    "type": _type,
    "enum": _values,
    "const": _anything,
    "properties": _schemas_by_name,
    "required": _names,
    "additionalProperties": _schema,
    "items": _items,
    "prefixItems": _schemas,
    "minItems": _least,
    "maxItems": _count,
    "minLength": _least,
    "maxLength": _count,
    "pattern": _text,
    "format": _text,
    "minimum": _number,
    "maximum": _number,
    "exclusiveMinimum": _number,
    "exclusiveMaximum": _number,
}
LISTS_OF_SCHEMAS = {"allOf": _schemas, "anyOf": _schemas, "oneOf": _schemas}
