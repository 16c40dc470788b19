"""The bytes that Python packs are the parameters that the GPU reads, for every `struct Params`."""

import re
from functools import cache

import numpy as np
import pytest

from py_runtime.gpu.kernel_sources import KernelSource
from py_runtime.gpu.shader_figures import Member, evaluate, members_of
from py_runtime.gpu.shader_sources import all_shaders
from py_runtime.live.uniforms import params_layout
from tests.gpu.test_kernel_sources import KERNELS, all_ways
from tests.runners import NativeRunner, Runner

CASES = "tests.live.params_cases"
STRUCT = r"\bstruct {name} \{{.*?\}}"


def structs_of(kernel: KernelSource, name: str = "Params") -> str:
    """Return the text of a struct, after those that it contains."""
    found = re.search(STRUCT.format(name=name), kernel.source, re.DOTALL)
    if found is None:
        return ""
    inner = [structs_of(kernel, member.type) for member in members_of(kernel.source, name)]
    return "".join(inner) + found[0] + "\n"


@cache  # joining all kernels takes seconds, which collecting tests would take without any need
def by_declaring_file() -> dict[str, KernelSource]:
    """Return a kernel for each file that declares `struct Params`."""
    return {
        next(file.name for file in way.files if "Params" in file.declares): way
        for name in KERNELS
        for way in all_ways(name)
    }


FILES = all_shaders().owners["Params"]


def leaves(kernel: KernelSource, at: str, struct: str) -> list[tuple[str, Member]]:
    """Return the members that are no structs, each with the expression that reads it."""
    found = []
    for member in members_of(kernel.source, struct):
        path = f"{at}.{member.name}"
        found += leaves(kernel, path, member.type) or [(path, member)]
    return found


def words_of(kernel: KernelSource, path: str, member: Member) -> list[str]:
    """Return an expression for each word of a member."""
    places = [path]
    if member.length is not None:
        count = evaluate(member.length, kernel.figures({}))
        assert count is not None
        places = [f"{path}[{index}]" for index in range(count)]
    parts = [".x", ".y", ".z", ".w"] if member.type.startswith("vec4") else [""]
    return [f"bitcast<u32>({place}{part})" for place in places for part in parts]


def reading_kernel(kernel: KernelSource) -> tuple[str, int]:
    """Return a kernel that writes all parameters, word by word, and the number of words."""
    words = [
        word
        for path, member in leaves(kernel, "params", "Params")
        for word in words_of(kernel, path, member)
    ]
    figures = "".join(
        f"const {name} = {value}u;\n"
        for name, value in kernel.figures({}).items()
        if re.search(rf"\b{name}\b", structs_of(kernel))
    )
    body = "".join(f"  out[{at}] = {word};\n" for at, word in enumerate(words))
    return (
        f"{figures}{structs_of(kernel)}"
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n"
        "@group(0) @binding(1) var<uniform> params: Params;\n"
        f"@compute @workgroup_size(1)\nfn main() {{\n{body}}}\n",
        len(words),
    )


def check(kernel: KernelSource, runner: Runner) -> None:
    source, count = reading_kernel(kernel)
    fields: dict[str, object] = {}
    wanted: list[int] = []
    for path, member in leaves(kernel, "params", "Params"):
        own = range(len(wanted) + 1, len(wanted) + 1 + len(words_of(kernel, path, member)))
        is_float = member.type.endswith("f") or member.type == "f32"
        bits = np.array(own, np.float32).view(np.uint32) if is_float else np.array(own, np.uint32)
        wanted += bits.tolist()
        values = [float(value) if is_float else value for value in own]
        fields[path.rpartition(".")[2]] = tuple(values) if len(values) > 1 else values[0]
    data = np.frombuffer(params_layout(kernel).pack(fields), np.uint8)
    found = runner.run(CASES, "read_words", source=source, packed=data, words=count)
    np.testing.assert_array_equal(found, wanted)


def test_every_struct_is_part_of_a_kernel() -> None:
    assert sorted(by_declaring_file()) == sorted(FILES)


@pytest.mark.parametrize("file", FILES)
def test_the_gpu_reads_what_python_packs(file: str, native: NativeRunner) -> None:
    check(by_declaring_file()[file], native)


@pytest.mark.browser
def test_the_page_reads_what_python_packs(in_page: Runner) -> None:
    """Check the nested structs alone: browsers have rules of their own for these."""
    nested = [
        kernel for kernel in by_declaring_file().values() if structs_of(kernel).count("struct") > 1
    ]
    assert nested
    for kernel in nested:
        check(kernel, in_page)
