"""The reader that turns a JSON schema into shapes, and refuses the rest by its name and place.

Where several schemas hold at once (allOf, a $ref with neighbours), their keywords are read
together. Properties come in the schema's order. An object that names its properties has no others,
unless the schema says additionalProperties.
"""

from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import unquote

from py_runtime.base.messages import message
from py_runtime.base.short_texts import short
from py_runtime.base.sizes import parse_count
from py_runtime.grammar.containers import Array, Object, Property
from py_runtime.grammar.disjoint import DisjointCheck
from py_runtime.grammar.finite_automata import all_but
from py_runtime.grammar.keywords import LISTS_OF_SCHEMAS, TYPE_OF, SchemaPart, read_atom
from py_runtime.grammar.limits import (
    MAX_DEPTH,
    MAX_LITERAL_BYTES,
    MAX_OPTIONS,
    MAX_QUOTED,
    MAX_REFERENCES,
    MAX_SCHEMA_NODES,
    MAX_SHORTEST,
    refuse,
)
from py_runtime.grammar.scalars import (
    Alternatives,
    Atoms,
    drop_duplicates,
    fixed_values,
    keyword_values,
    number_shape,
    stated_types,
    string_shape,
    write_json,
)
from py_runtime.grammar.shapes import Choice, Literals, Shape, fits, settle_all
from py_runtime.grammar.strings import Counted, String


def any_object() -> Choice:
    """JSON mode: an object of whatever values."""
    return shape_of({"type": "object"})


def shape_of(schema: Any) -> Choice:
    """RequestError names what is not supported, and where."""
    return SchemaReader(schema).read()


class SchemaReader:
    """A reader of each combination of schemas once, so that they may refer to themselves."""

    def __init__(self, schema: Any) -> None:
        self.root = SchemaPart(schema, "#")
        self._choices: dict[tuple[int, ...], Choice] = {}
        self._unread: list[tuple[Choice, tuple[SchemaPart, ...]]] = []
        self._expanded: dict[int, Alternatives] = {}
        self._expanding: set[int] = set()
        self._disjoint = DisjointCheck(self.alternatives)
        self._kept: list[Any] = []  # schemas made here; their ids must stay their own
        self._literal_bytes = 0

    def read(self) -> Choice:
        root = self.choice((self.root,))
        while self._unread:
            choice, parts = self._unread.pop()
            choice.options = self._options(parts)
        if not settle_all(list(self._choices.values())):
            raise refuse(message("schema_too_deep"))
        if not fits(root, 0):
            raise refuse(message("schema_impossible", size=MAX_SHORTEST, levels=MAX_DEPTH))
        return root

    def choice(self, parts: tuple[SchemaPart, ...]) -> Choice:
        """Return the place where all these schemas hold.

        It is read later, as schemas may be recursive.
        """
        parts = tuple(part for part in parts if part.schema is not True)
        key = tuple(sorted({id(part.schema) for part in parts}))
        if key not in self._choices:
            if len(self._choices) == MAX_SCHEMA_NODES:
                raise refuse(message("schema_too_many_places", most=MAX_SCHEMA_NODES))
            self._choices[key] = Choice()
            self._unread.append((self._choices[key], parts))
        return self._choices[key]

    def _options(self, parts: tuple[SchemaPart, ...]) -> list[Shape]:
        options: list[Shape] = []
        fixed: list[Any] = []
        for atoms in self.alternatives(parts):
            values = fixed_values(atoms)
            if values is None:
                options += self._shapes(atoms)
            else:
                fixed += values
        return options + self._fixed_shapes(drop_duplicates(fixed))

    def alternatives(self, parts: Iterable[SchemaPart]) -> Alternatives:
        """Return what the parts ask for together, each alternative without any choice left."""
        found: Alternatives = [()]
        for part in parts:
            found = self._both(found, self._expand(part), part)
        return found

    def _both(self, left: Alternatives, right: Alternatives, part: SchemaPart) -> Alternatives:
        if len(left) * len(right) > MAX_OPTIONS:
            raise refuse(message("schema_too_many_alternatives", most=MAX_OPTIONS), part.path)
        return [tuple(dict.fromkeys(a + b)) for a in left for b in right]

    def _expand(self, part: SchemaPart) -> Alternatives:
        if isinstance(part.schema, bool):
            return [()] if part.schema else []
        key = id(part.schema)
        if key in self._expanding or len(self._expanding) == MAX_REFERENCES:
            raise refuse(message("schema_refers_to_itself"), part.path)
        if key not in self._expanded:
            self._expanding.add(key)
            self._expanded[key] = self._combine_keywords(part)
            self._expanding.remove(key)
        return self._expanded[key]

    def _combine_keywords(self, part: SchemaPart) -> Alternatives:
        """Return the schema's own keywords, with those of $ref, allOf, anyOf and oneOf."""
        atom = read_atom(part)
        found: Alternatives = [(atom,)] if atom.keywords else [()]
        if "$ref" in part.schema:
            found = self._both(found, self._expand(self._follow_reference(part)), part)
        for keyword, check in LISTS_OF_SCHEMAS.items():
            if keyword not in part.schema:
                continue
            if wanted := check(part.schema[keyword]):
                fault = message("schema_list", keyword=keyword, wanted=wanted)
                raise refuse(fault, part.path)
            inner = [part.inside(keyword, index) for index in range(len(part.schema[keyword]))]
            if keyword == "allOf":
                found = self._both(found, self.alternatives(inner), part)
                continue
            branches = [self._expand(each) for each in inner]
            if keyword == "oneOf":
                self._disjoint.check(branches, part)
            found = self._both(found, [atoms for each in branches for atoms in each], part)
        return found

    def _follow_reference(self, part: SchemaPart) -> SchemaPart:
        reference = part.schema["$ref"]
        named = short(reference, MAX_QUOTED)
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            raise refuse(message("schema_reference_outside", reference=named), part.path)
        found: Any = self.root.schema
        for name in reference.split("/")[1:]:
            name = unquote(name).replace("~1", "/").replace("~0", "~")
            place = parse_count(name)
            if isinstance(found, list) and place is not None and place < len(found):
                found = found[place]
            elif isinstance(found, dict) and name in found:
                found = found[name]
            else:
                raise refuse(message("schema_reference_nowhere", reference=named), part.path)
        if not isinstance(found, dict | bool):
            raise refuse(message("schema_reference_no_schema", reference=named), part.path)
        return SchemaPart(found, reference)

    def _shapes(self, atoms: Atoms) -> list[Shape]:
        makers: dict[str, Callable[[Atoms], Shape | None]] = {
            "null": lambda _: Literals([b"null"]),
            "boolean": lambda _: Literals([b"true", b"false"]),
            "integer": lambda atoms: number_shape(atoms, whole=True),
            "number": lambda atoms: number_shape(atoms, whole=False),
            "string": string_shape,
            "array": self._array,
            "object": self._object,
        }
        made = [makers[name](atoms) for name in types(atoms)]
        return [shape for shape in made if shape]

    def _fixed_shapes(self, values: list[Any]) -> list[Shape]:
        """Texts as they stand; lists and objects as shapes, for the whitespace between."""
        texts = [write_json(value) for value in values if not isinstance(value, list | dict)]
        self._count_bytes(texts)
        shapes: list[Shape] = [Literals(texts)] if texts else []
        for value in values:
            if isinstance(value, list):
                items = [self._constant(each) for each in value]
                shapes.append(Array(items, Choice(), len(items), len(items)))
            elif isinstance(value, dict):
                members = [
                    Property(write_json(name), self._constant(each), required=True)
                    for name, each in value.items()
                ]
                self._count_bytes([member.name for member in members])
                shapes.append(Object(members, None, Choice()))
        return shapes

    def _constant(self, value: Any) -> Choice:
        schema = {"const": value}
        self._kept.append(schema)
        return self.choice((SchemaPart(schema, "const"),))

    def _count_bytes(self, texts: list[bytes]) -> None:
        self._literal_bytes += sum(map(len, texts))
        if self._literal_bytes > MAX_LITERAL_BYTES:
            raise refuse(message("schema_too_many_bytes", most=MAX_LITERAL_BYTES))

    def _array(self, atoms: Atoms) -> Array | None:
        least = max(keyword_values(atoms, "minItems"), default=0)
        most = min(keyword_values(atoms, "maxItems"), default=None)
        if most is not None and most < least:
            return None
        length = max((len(listed) for listed in keyword_values(atoms, "prefixItems")), default=0)
        prefix = [self._item(atoms, index) for index in range(length)]
        return Array(prefix, self._item(atoms, length), least, most)

    def _item(self, atoms: Atoms, index: int) -> Choice:
        parts: list[SchemaPart] = []
        for atom in atoms:
            if index < len(atom.get("prefixItems") or ()):
                parts.append(atom.inside("prefixItems", index))
            elif "items" in atom.keywords:
                parts.append(atom.inside("items"))
        return self.choice(tuple(parts))

    def _object(self, atoms: Atoms) -> Object:
        named = [name for properties in keyword_values(atoms, "properties") for name in properties]
        required = [name for names in keyword_values(atoms, "required") for name in names]
        names = dict.fromkeys(named + required)
        needed = set(required)
        properties = [
            Property(write_json(name), self._property(atoms, name), name in needed)
            for name in names
        ]
        self._count_bytes([each.name for each in properties])
        others = [atom for atom in atoms if "additionalProperties" in atom.keywords]
        if not others and named:
            return Object(properties, None, Choice())
        extra = self.choice(tuple(atom.inside("additionalProperties") for atom in others))
        key = String(all_but(names) if names else Counted())
        return Object(properties, key, extra)

    def _property(self, atoms: Atoms, name: str) -> Choice:
        parts: list[SchemaPart] = []
        for atom in atoms:
            if name in (atom.get("properties") or ()):
                parts.append(atom.inside("properties", name))
            elif "additionalProperties" in atom.keywords:
                parts.append(atom.inside("additionalProperties"))
        return self.choice(tuple(parts))


def types(atoms: Atoms) -> list[str]:
    """Return the types that all atoms allow; an atom without any means those of its keywords."""
    allowed = stated_types(atoms)
    if not keyword_values(atoms, "type"):
        spoken = {TYPE_OF[keyword] for atom in atoms for keyword in atom.keywords}
        allowed = [name for name in allowed if name in spoken] or allowed
    return [name for name in allowed if name != "integer" or "number" not in allowed]
