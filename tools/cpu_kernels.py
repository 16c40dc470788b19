"""Compile the kernels for the CPU: `python -m tools.cpu_kernels`.

A kernel in C stands beside the shader whose interface it has. Structs, figures and the names of
buffers, constants and slots come from the shaders, as headers. The result is two WebAssembly
modules, with and without relaxed SIMD, and a table of what is in them.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from py_runtime.cpu.kernel_table import KERNELS_FOLDER, MODULES, TABLE
from py_runtime.gpu.kernel_sources import KernelSource
from py_runtime.gpu.shader_figures import evaluate, figures_of, members_of
from py_runtime.gpu.shader_sources import Library, ShaderFile, all_shaders
from py_runtime.live.uniforms import ParamsLayout
from tools.files import ROOT

SHADERS = ROOT / "shaders"
BUILD = ROOT / "build" / "cpu"
MAX_PAGES = 65535  # of 64 KiB: a WebAssembly memory's 4 GiB, less one so that its size fits 32 bits
STACK_BYTES = 1 << 17  # of the driving thread; others bring their own
COMPILER = [sys.executable, "-m", "ziglang", "cc"]
FLAGS = [
    "--target=wasm32-freestanding",
    "-O3",
    "-std=c17",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-unused-parameter",
    "-fno-math-errno",
    "-fno-sanitize=undefined",
    "-ffp-contract=off",
    "-msimd128",
    "-matomics",
    "-mbulk-memory",
    "-nostdlib",
    "-g0",
    "-Wl,--strip-all",
    "-Wl,--no-entry",
    "-Wl,--strip-debug",
    "-Wl,--import-memory",
    "-Wl,--shared-memory",
    f"-Wl,--max-memory={MAX_PAGES << 16}",
    "-Wl,--export=__stack_pointer",
    "-Wl,--export=__heap_base",
    f"-Wl,-z,stack-size={STACK_BYTES}",
]
VARIANTS = {MODULES[0]: [], MODULES[1]: ["-mrelaxed-simd"]}

PARAMS = "Params"
C_TYPES = {
    "f32": "f32",
    "u32": "u32",
    "i32": "i32",
    "vec2f": "f32x2",
    "vec2u": "u32x2",
    "vec4f": "f32x4",
    "vec4u": "u32x4",
    "vec4i": "i32x4",
    "atomic<u32>": "u32",
}
_STRUCT = re.compile(r"^struct (\w+) \{", re.MULTILINE)
_BOUND = re.compile(r"@binding\(\d+\)\s*var<[^>]*>\s*(\w+)")
_OVERRIDE = re.compile(r"^override (\w+)", re.MULTILINE)
_KERNEL = re.compile(r"^KERNEL\((\w+),", re.MULTILINE)
_FRAGMENT = re.compile(r"^FRAGMENT\(\w+, (\w+)\)", re.MULTILINE)


def main() -> None:
    """Write the headers, compile the kernels and write the table of their names."""
    library = all_shaders()
    include = BUILD / "include"
    table = _table(library)
    _write(include / "names.h", _names_header(table))
    for file in library.files.values():
        _write(include / f"{file.name}.wgsl.h", _header(library, file))
    _write(BUILD / "registry.c", _registry(table))
    sources = [*map(str, _c_files()), str(BUILD / "registry.c")]
    KERNELS_FOLDER.mkdir(parents=True, exist_ok=True)
    for module, flags in VARIANTS.items():
        out = KERNELS_FOLDER / module
        command = [*COMPILER, *FLAGS, *flags, f"-I{include}", f"-I{SHADERS / 'cpu'}"]
        subprocess.run([*command, f"-I{SHADERS}", *sources, "-o", str(out)], check=True)
    (KERNELS_FOLDER / TABLE).write_text(json.dumps(table))


def _c_files() -> list[Path]:
    return sorted(SHADERS.rglob("*.c"))


def _table(library: Library) -> dict[str, list[str]]:
    """Return the names in the order of their numbers."""
    files = library.files.values()
    by_symbol = {name.replace("/", "_"): name for name in library.files}
    sources = [path.read_text(encoding="utf-8") for path in _c_files()]
    return {
        "bindings": sorted({name for file in files for name in _BOUND.findall(file.source)}),
        "constants": sorted({name for file in files for name in _OVERRIDE.findall(file.source)}),
        "slots": sorted({slot for file in files for slot in file.slots}),
        "kernels": [by_symbol[name] for text in sources for name in _KERNEL.findall(text)],
        "fragments": [by_symbol[name] for text in sources for name in _FRAGMENT.findall(text)],
    }


def _names_header(table: dict[str, list[str]]) -> str:
    lines = ["#pragma once"]
    for key, prefix in (("bindings", "BINDING"), ("constants", "CONSTANT"), ("slots", "SLOT")):
        names = [f"{prefix}_{name}" for name in table[key]]
        lines.append(f"enum {{ {', '.join([*names, key.upper()])} }};")
    return "\n".join(lines) + "\n"


def _header(library: Library, file: ShaderFile) -> str:
    """Return a shader's structs and whole numbers in C; Params is named after the file."""
    lines = ["#pragma once", '#include "simd.h"']
    lines += [f'#include "{need}.wgsl.h"' for need in file.needs if _structs(library.file(need))]
    figures = figures_of(file.name)
    names = [name for name, _ in file.constants if _is_constant(file, name, figures)]
    own = [f"{name} = {figures[name]}" for name in names]
    if own:
        lines.append(f"enum {{ {', '.join(own)} }};")
    for struct in _structs(file):
        members = " ".join(_members(file, struct))
        lines.append(f"typedef struct {{ {members} }} {_c_name(file, struct)};")
    if PARAMS in _structs(file):
        lines += _checked_offsets(library, file)
    return "\n".join(lines) + "\n"


def _is_constant(file: ShaderFile, name: str, figures: Mapping[str, int]) -> bool:
    return name in figures and re.search(rf"^const {name}\b", file.source, re.MULTILINE) is not None


def _structs(file: ShaderFile) -> list[str]:
    return _STRUCT.findall(file.source)


def _c_name(file: ShaderFile, struct: str) -> str:
    return f"{file.name.rpartition('/')[2]}_params" if struct == PARAMS else struct


def _members(file: ShaderFile, struct: str) -> Iterator[str]:
    for member in members_of(file.source, struct):
        length = "" if member.length is None else "[]"
        if member.length:
            length = f"[{evaluate(member.length, figures_of(file.name))}]"
        kind = C_TYPES.get(member.type, member.type)
        yield f"{kind} {member.name}{length};"


def _checked_offsets(library: Library, file: ShaderFile) -> list[str]:
    """Return assertions that the compiler lays out Params as Python packs it."""
    files = _with_needs(library, file)
    source = "\n".join(one.source for one in files)
    packed = ParamsLayout(KernelSource(file.name, file, files, source, (), {})).offsets
    name = _c_name(file, PARAMS)
    message = f"Python packs another {PARAMS} of {file.name}"
    return [
        f'_Static_assert(__builtin_offsetof({name}, {path}) == {packed[member]}, "{message}");'
        for path, member in _leaves(source, PARAMS)
    ]


def _with_needs(library: Library, file: ShaderFile) -> tuple[ShaderFile, ...]:
    brought = [part for need in file.needs for part in _with_needs(library, library.file(need))]
    return (*dict.fromkeys(brought), file)


def _leaves(source: str, struct: str) -> Iterator[tuple[str, str]]:
    """Yield the members that are no structs, each with its path from the outermost struct."""
    for member in members_of(source, struct):
        inner = list(_leaves(source, member.type))
        yield from ((f"{member.name}.{path}", name) for path, name in inner)
        if not inner:
            yield member.name, member.name


def _registry(table: dict[str, list[str]]) -> str:
    """Return C with the addresses of kernels and fragments in the order of their numbers."""
    kernels = [name.replace("/", "_") for name in table["kernels"]]
    fragments = [name.replace("/", "_") for name in table["fragments"]]
    lines = ['#include "kernel.h"']
    lines += [f"extern const Kernel {name};" for name in kernels]
    lines += [f"extern const char {name};" for name in fragments]
    kernels_at = ", ".join(f"&{name}" for name in kernels)
    fragments_at = ", ".join([*(f"&{name}" for name in fragments), "0"])  # C has no empty arrays
    lines += [
        f"static const Kernel *const kernels[] = {{{kernels_at}}};",
        f"static const void *const fragments[] = {{{fragments_at}}};",
        _look_up("Run *", "kernel_at", "kernels[number]->run"),
        _look_up("u32 ", "grain_of", "kernels[number]->grain"),
        _look_up("const void *", "fragment_at", "fragments[number]"),
    ]
    return "\n".join(lines) + "\n"


def _look_up(kind: str, name: str, found: str) -> str:
    exported = f'__attribute__((export_name("{name}")))'
    return f"{exported} {kind}{name}(u32 number) {{ return {found}; }}"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


if __name__ == "__main__":
    main()
