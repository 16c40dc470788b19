"""Workgroup sizes, tile figures and codes as the WGSL has them: one source for both sides."""

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache

from py_runtime.base.errors import GraphError
from py_runtime.gpu.shader_sources import ShaderFile, all_shaders

_LITERAL = re.compile(r"\b(0x[0-9a-f]+|\d+)[iu]?\b")
_WORKGROUP = re.compile(r"@workgroup_size\(([^),]+)\)")
_WORKGROUP_ARRAY = re.compile(r"^var<workgroup> \w+: array<(\w+), ([^>]+)>;", re.MULTILINE)
_BYTES = {"f32": 4, "u32": 4, "vec4f": 16, "mat4x4f": 64}
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
}


def evaluate(expression: str, known: Mapping[str, int]) -> int | None:
    """A whole number, from others by simple arithmetic; None for anything else."""
    if literal := _LITERAL.fullmatch(expression):
        return int(literal[1], 0)

    def value(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name):
            return known[node.id]
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        raise KeyError(expression)

    try:
        return value(ast.parse(_LITERAL.sub(r"\1", expression), mode="eval").body)
    except (KeyError, SyntaxError):
        return None


def figures_in(files: Iterable[ShaderFile], given: Mapping[str, float]) -> dict[str, int]:
    """Constants of joined files, what is needed before what needs it; `given` are overrides."""
    figures = {name: int(value) for name, value in given.items()}
    for file in files:
        for name, expression in file.constants:
            number = evaluate(expression, figures)
            if number is not None:
                figures.setdefault(name, number)
    return figures


@cache
def figures_of(name: str) -> Mapping[str, int]:
    """Constants of a file and of the fragments that it always brings along."""
    file = all_shaders().file(name)
    brought: dict[str, int] = {}
    for need in file.needs:
        brought |= figures_of(need)
    return figures_in([file], brought)


def workgroup_size(file: ShaderFile, figures: Mapping[str, int]) -> int:
    found = _WORKGROUP.search(file.source)
    size = evaluate(found[1], figures) if found else None
    if size is None:
        raise GraphError(f"shader {file.name}: its workgroup size is no number that can be read")
    return size


def workgroup_memory(name: str) -> int:
    """The bytes of it that a kernel takes."""
    figures, total = figures_of(name), 0
    for element, length in _WORKGROUP_ARRAY.findall(all_shaders().file(name).source):
        count = evaluate(length, figures)
        if count is None:
            raise GraphError(f"shader {name}: an array of {length} cannot be sized")
        total += _BYTES[element] * count
    return total
