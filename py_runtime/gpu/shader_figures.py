"""Workgroup sizes, tile sizes, codes and structs read from the WGSL, their only source."""

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from py_runtime.base.errors import GraphError
from py_runtime.base.shapes import round_up
from py_runtime.gpu.shader_sources import ShaderFile, all_shaders

_LITERAL = re.compile(r"\b(0x[0-9a-f]+|\d+)[iu]?\b")
_WORKGROUP = re.compile(r"@workgroup_size\(([^),]+)\)")
_WORKGROUP_VARIABLE = re.compile(
    r"^var<workgroup> (\w+): (?:array<(\w+|atomic<u32>), ([^>]+)>|(\w+));", re.MULTILINE
)
_FUNCTION = re.compile(r"^fn (\w+)\(.*?^\}", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"\w+")
_STRUCT = r"\bstruct {name} \{{(.*?)\}}"
_MEMBER = re.compile(r"(\w+)\s*:\s*(?:array<(atomic<u32>|\w+)(,[^>]+)?>|(\w+))")
_COMMENT = re.compile(r"//[^\n]*")
# Bytes, and what their address is a multiple of.
_EXTENTS = {
    "f32": (4, 4),
    "u32": (4, 4),
    "i32": (4, 4),
    "atomic<u32>": (4, 4),
    "vec2f": (8, 8),
    "vec2u": (8, 8),
    "vec4f": (16, 16),
    "vec4u": (16, 16),
    "mat2x4f": (32, 16),
    "mat4x4f": (64, 16),
}
_TRUTHS = {"true": 1, "false": 0}
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
}


def evaluate(expression: str, known: Mapping[str, int]) -> int | None:
    """Evaluate simple arithmetic over known whole numbers; None for anything else."""
    if literal := _LITERAL.fullmatch(expression):
        return int(literal[1], 0)

    def value(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name):
            return _TRUTHS[node.id] if node.id in _TRUTHS else known[node.id]
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        raise KeyError(expression)

    try:
        return value(_parsed(expression))
    except (KeyError, SyntaxError):
        return None


@cache
def _parsed(expression: str) -> ast.expr:
    return ast.parse(_LITERAL.sub(r"\1", expression), mode="eval").body


def figures_in(files: Iterable[ShaderFile], given: Mapping[str, float]) -> dict[str, int]:
    """Return the constants of joined files, which may stand in any order; `given` are overrides."""
    figures = {name: int(value) for name, value in given.items()}
    left = [constant for file in files for constant in file.constants]
    while left:
        unknown = []
        for name, expression in left:
            number = evaluate(expression, figures)
            if number is None:
                unknown.append((name, expression))
            else:
                figures.setdefault(name, number)
        left = unknown if len(unknown) < len(left) else []
    return figures


@cache
def figures_of(name: str) -> Mapping[str, int]:
    """Return the constants of a file and of the fragments that always come with it."""
    file = all_shaders().file(name)
    brought: dict[str, int] = {}
    for need in file.needs:
        brought |= figures_of(need)
    return figures_in([file], brought)


def workgroup_size(file: ShaderFile, figures: Mapping[str, int]) -> int:
    """Return the number of invocations in a workgroup, in one dimension."""
    found = _WORKGROUP.search(file.source)
    size = evaluate(found[1], figures) if found else None
    if size is None:
        raise GraphError(f"shader {file.name}: its workgroup size is not a number that can be read")
    return size


def workgroup_bytes(files: Iterable[ShaderFile], figures: Mapping[str, int]) -> int:
    """Return the workgroup memory, in bytes, that the entry point of the joined files can reach."""
    files = tuple(files)
    functions = {name: words for file in files for name, words in _functions_of(file).items()}
    reached, waiting = set(functions["main"]), {"main"}
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        reached |= functions[name]
        waiting |= functions[name] & functions.keys() - seen
    total = 0
    source = "\n".join(file.source for file in files)
    variables = [variable for file in files for variable in _workgroup_variables_of(file)]
    for name, element, length, single in variables:
        count = evaluate(length, figures) if length else 1
        if count is None:
            raise GraphError(f"workgroup variable {name}: an array of {length} cannot be sized")
        size, _ = extent_of(element or single, source, figures)
        total += size * count * (name in reached)
    return total


@cache
def _functions_of(file: ShaderFile) -> dict[str, set[str]]:
    """Return the words each function uses; cached, since a file is part of hundreds of kernels."""
    return {found[1]: set(_NAME.findall(found[0])) for found in _FUNCTION.finditer(file.source)}


@cache
def _workgroup_variables_of(file: ShaderFile) -> list[tuple[str, str, str, str]]:
    return _WORKGROUP_VARIABLE.findall(file.source)


@dataclass(frozen=True)
class Member:
    """A member of a struct."""

    name: str
    type: str  # of an array: its elements'
    length: str | None  # of an array: an expression, or nothing where the buffer's size decides


def members_of(source: str, struct: str) -> list[Member]:
    """Return the members of a struct in order; an empty list if there is no such struct."""
    found = re.search(_STRUCT.format(name=struct), source, re.DOTALL)
    body = _COMMENT.sub("", found[1]) if found else ""
    return [
        Member(name, element or single, length.strip(", ") if element else None)
        for name, element, length, single in _MEMBER.findall(body)
    ]


def extent_of(kind: str, source: str, figures: Mapping[str, int]) -> tuple[int, int]:
    """Return a type's size and alignment in bytes; structs as WGSL lays them out."""
    if kind in _EXTENTS:
        return _EXTENTS[kind]
    _, size, alignment = _laid_out(kind, source, figures)
    return size, alignment


def offset_of(name: str, struct: str, member: str) -> int:
    """Return the offset in bytes of a member of a struct in the named file."""
    return _laid_out(struct, all_shaders().file(name).source, figures_of(name))[0][member]


def _laid_out(
    struct: str, source: str, figures: Mapping[str, int]
) -> tuple[dict[str, int], int, int]:
    """Return the offset of each member, and the extent of the whole struct."""
    offsets: dict[str, int] = {}
    end, widest = 0, 1
    for member in members_of(source, struct):
        size, alignment = extent_of(member.type, source, figures)
        offsets[member.name] = round_up(end, alignment)
        if member.length is not None:
            length = evaluate(member.length, figures) if member.length else 0
            if length is None:
                raise GraphError(f"{struct}.{member.name}: {member.length} cannot be read")
            size = round_up(size, alignment) * length
        end = offsets[member.name] + size
        widest = max(widest, alignment)
    if not offsets:
        raise GraphError(f"the type {struct} is neither known nor a struct of the shader")
    return offsets, round_up(end, widest), widest
