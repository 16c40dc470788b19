"""The keywords of JSON Schema: which are known, which are only annotations, what they may hold."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from py_runtime.base.messages import Message, message
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
            fault = message("schema_keyword", keyword=short(keyword, MAX_QUOTED))
            raise refuse(fault, part.path)
        if wanted := check(value):
            found = short(value, MAX_QUOTED)
            fault = message("schema_value", keyword=keyword, value=found, wanted=wanted)
            raise refuse(fault, part.path)
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


def _schema(value: Any) -> Message | None:
    return None if isinstance(value, dict | bool) else message("schema_wants_schema")


def _schemas_by_name(value: Any) -> Message | None:
    good = isinstance(value, dict) and not any(map(_schema, value.values()))
    return None if good else message("schema_wants_named_schemas")


def _schemas(value: Any) -> Message | None:
    good = isinstance(value, list) and value and not any(map(_schema, value))
    return None if good else message("schema_wants_schemas")


def _names(value: Any) -> Message | None:
    good = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return None if good else message("schema_wants_names")


def _count(value: Any) -> Message | None:
    return None if type(value) is int and value >= 0 else message("schema_wants_count")


def _least(value: Any) -> Message | None:
    good = type(value) is int and 0 <= value <= MAX_SHORTEST
    return None if good else message("schema_wants_limited_count", most=MAX_SHORTEST)


def _number(value: Any) -> Message | None:
    return None if type(value) in (int, float) else message("schema_wants_number")


def _text(value: Any) -> Message | None:
    return None if isinstance(value, str) else message("schema_wants_text")


def _type(value: Any) -> Message | None:
    listed = value if isinstance(value, list) and value else [value]
    good = all(isinstance(each, str) and each in TYPES for each in listed)
    return None if good else message("schema_wants_types", types=list(TYPES))


def _values(value: Any) -> Message | None:
    return None if isinstance(value, list) and value else message("schema_wants_values")


def _items(value: Any) -> Message | None:
    return message("schema_wants_items") if _schema(value) else None


def _anything(value: Any) -> Message | None:
    return None


CHECKS: dict[str, Callable[[Any], Message | None]] = {
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
