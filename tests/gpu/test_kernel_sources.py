"""The needs of WGSL files, which are what they use; and the figures that are read from them."""

import re
from collections.abc import Iterator
from functools import cache

import pytest

from py_runtime.base.errors import GraphError
from py_runtime.gpu.kernel_sources import KernelSource, Plugs, join, kernel_source
from py_runtime.gpu.second_copies import SECOND, copy_of
from py_runtime.gpu.shader_figures import evaluate, extent_of, figures_of, offset_of
from py_runtime.gpu.shader_sources import Library, all_shaders, parse
from py_runtime.ops.binary import CODES
from py_runtime.ops.kernels import elementwise
from tools.files import ROOT

EMPTY_SLOT = re.compile(r"into its slot '(\w+)' \(([\w/]+)\*\), and nothing does")
NEEDS = re.compile(r"// needs: .*")
FILES = all_shaders().files


def every_way(library: Library, name: str, plugs: Plugs) -> Iterator[tuple[Plugs, KernelSource]]:
    """Yield a kernel with all that can plug into its slots."""
    try:
        yield plugs, join(library, name, plugs)
    except GraphError as error:
        empty = EMPTY_SLOT.search(str(error))
        if empty is None:
            raise
        choices = library.alternatives(empty[2])
        if empty[1].endswith(SECOND):  # each is the second of one other
            first = plugs.get(empty[1].removesuffix(SECOND), choices[0])
            choices = [choices[choices.index(first) - 1]]
        for choice in choices:
            yield from every_way(library, name, {**plugs, empty[1]: choice})


KERNELS = [name for name, file in FILES.items() if file.is_kernel]


@cache
def all_ways(kernel: str) -> list[KernelSource]:
    """Return all ways to join a kernel of this project's files, joined once."""
    return [way for _, way in every_way(all_shaders(), kernel, {})]


def ways_with_new_files(kernel: str) -> list[KernelSource]:
    """Return the ways to join a kernel that have a file which none before them has."""
    seen: set[str] = set()
    found = []
    for way in all_ways(kernel):
        names = {file.name for file in way.files}
        if not names <= seen:
            found.append(way)
        seen |= names
    return found


@cache
def parts_of(kernel: str) -> set[str]:
    """Return the files that take part in some way."""
    return {file.name for way in all_ways(kernel) for file in way.files}


def join_some_with(name: str, library: Library) -> None:
    """Join a kernel that the file is part of, in every way."""
    kernel = next(kernel for kernel in KERNELS if name in parts_of(kernel))
    for _ in every_way(library, kernel, {}):
        pass


def with_line(name: str, *needs: str) -> Library:
    """Return the project's files, one of them with another line of needs."""
    line = f"// needs: {', '.join(needs) or 'nothing'}"
    changed = parse(name, NEEDS.sub(line, FILES[name].source))
    return Library({**FILES, name: changed})


def line_of(name: str) -> list[str]:
    text = NEEDS.search(FILES[name].source)
    assert text is not None
    entries = text[0].removeprefix("// needs: ").split(", ")
    return [] if entries == ["nothing"] else entries


def test_every_line_is_right_and_every_file_is_part_of_some_kernel() -> None:
    copies = {copy_of(name) for name in FILES}
    assert set().union(*map(parts_of, KERNELS)) - copies == set(FILES)


def test_fragments_lie_apart_from_kernels() -> None:
    for name, file in FILES.items():
        is_apart = name.startswith("shared/") or "/fragments/" in name
        assert file.is_kernel != is_apart, name


def test_the_runtime_launches_every_kernel() -> None:
    texts = [path.read_text() for path in (ROOT / "py_runtime").rglob("*.py")]
    for name in KERNELS:
        assert any(f'"{name}"' in text for text in texts), name


@pytest.mark.parametrize("name", [name for name in FILES if line_of(name)])
def test_nothing_can_be_left_out_of_a_line(name: str) -> None:
    line = line_of(name)
    for left_out in line:
        library = with_line(name, *(entry for entry in line if entry != left_out))
        with pytest.raises(GraphError) as error:
            join_some_with(name, library)
        assert f"shader {name} uses " in str(error.value)
        named = left_out.removeprefix("@").rpartition(" = ")[2].rstrip("*")
        assert named in str(error.value)


@pytest.mark.parametrize("name", FILES)
def test_a_superfluous_need_is_refused(name: str) -> None:
    others = ("shared/walk", "linear/fragments/block", "linear/fragments/tokens")
    more = next(other for other in others if other not in (name, *line_of(name)))
    text = re.escape(f"shader {name} needs {more} by its line, but uses nothing of it")
    with pytest.raises(GraphError, match=text):
        join_some_with(name, with_line(name, *line_of(name), more))
    with pytest.raises(GraphError, match=re.escape(f"shader {name} needs @made_up by its line")):
        join_some_with(name, with_line(name, *line_of(name), "@made_up"))


@pytest.mark.parametrize(
    ("name", "plugs", "text"),
    [
        ("reduce/reduce", {}, "reduce/reduce: one of .* plugs into its slot 'element' .*nothing"),
        ("reduce/reduce", {"element": "f64"}, r"one of \['f32', 'i32'\] .*, not 'f64'"),
        ("reduce/softmax", {"element": "f32"}, "reduce/softmax: 'f32' is to plug into 'element'"),
        ("shared/walk", {}, "shared/walk is a fragment"),
        ("reduce/median", {}, "there is no shader reduce/median"),
    ],
)
def test_what_cannot_be_joined_is_told(name: str, plugs: Plugs, text: str) -> None:
    with pytest.raises(GraphError, match=text):
        kernel_source(name, plugs)


def test_a_need_that_does_not_exist_is_told() -> None:
    text = "shader reduce/softmax needs shared/none, which does not exist"
    with pytest.raises(GraphError, match=text):
        join(with_line("reduce/softmax", "shared/none"), "reduce/softmax", {})


@pytest.mark.parametrize("source", ["fn f() {}", "// needs: nothing\n// needs: nothing\nfn f() {}"])
def test_a_file_has_one_line_of_needs(source: str) -> None:
    with pytest.raises(GraphError, match=r"shader new has [02] lines that begin '// needs:'"):
        parse("new", source)


def test_files_are_joined_once_each_after_what_they_need() -> None:
    plugs = {"tokens": "shared", "weight": "q4_0", "epilogue": "rows", "output": "bias"}
    joined = kernel_source("linear/gemm", plugs)
    names = [file.name for file in joined.files]
    assert len(set(names)) == len(names)
    for at, file in enumerate(joined.files):
        assert set(file.needs) <= set(names[:at])
    code = [line for line in joined.source.splitlines() if line and not line.startswith("//")]
    assert code[0] == "enable subgroups;"
    numbers = [int(number) for number in re.findall(r"@binding\((\d+)\)", joined.source)]
    assert numbers == list(range(len(joined.bindings)))


def test_what_comes_along_twice_has_names_of_its_own() -> None:
    blocks = {"blocks": "q4_k", "blocks_second": "q6_k", "lanes": "memory"}
    plugs = {**blocks, "token": "plain", "epilogue": "rows", "output": "bias"}
    kernel = "linear/gemv_mixed_int8"
    joined = kernel_source(kernel, plugs)
    names = [file.name for file in joined.files]
    copies = (
        "linear/fragments/int8_products",
        "shared/weights/order",
        "linear/fragments/held_blocks",
        "shared/weights/blocks_q6_k",
    )
    assert [name for name in names if name not in FILES] == [copy_of(n) for n in reversed(copies)]
    assert "shared/weights/blocks_q6_k" not in names
    assert {"weight", "scales", "weight_second", "scales_second"} <= set(joined.bindings)
    figures = joined.figures({})
    assert (figures["HALVES"], figures["HALVES_second"]) == (1, 2)
    with pytest.raises(GraphError, match=r"slot 'blocks_second' .*, not 'q7_k'"):
        kernel_source(kernel, {**plugs, "blocks_second": "q7_k"})
    library = with_line(kernel, "second = shared/none", *line_of(kernel))
    with pytest.raises(GraphError, match="there is no shader shared/none"):
        join(library, kernel, plugs)


def test_names_inside_a_function_are_its_own() -> None:
    file = parse(
        "new",
        """// needs: nothing
struct Pair { first: u32, }
fn own(sums: u32) -> u32 {
  let walk = sums;
  return walk;
}
fn others() -> u32 {
  switch CODE {
    case ADD: { return sums[0].walk; }
    default: { return 0u; }
  }
}
""",
    )
    assert file.declares == {"Pair", "own", "others"}
    assert file.uses >= {"sums", "CODE", "ADD"}
    assert not file.uses & {"walk", "first"}


# Figures ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("64u", 64),
        ("0xffu", 255),
        ("4", 4),
        ("WIDTH / 4u", 8),
        ("2u * (WIDTH + 3u) % 8u - 1i", 5),
        ("UNKNOWN * 2u", None),
        ("-2e30", None),
        ("vec4u(1u)", None),
    ],
)
def test_figures_are_whole_numbers_by_simple_arithmetic(expression: str, value: int | None) -> None:
    assert evaluate(expression, {"WIDTH": 32}) == value


def test_figures_come_from_the_file_and_what_it_always_brings() -> None:
    known = figures_of("attention/attend_wide")
    brought = figures_of("attention/fragments/teams")
    assert "TEAM" not in dict(FILES["attention/attend_wide"].constants)
    assert known["TEAM"] == brought["TEAM"]
    assert known["AT_A_TIME"] == known["WORKGROUP"] // brought["TEAM"]


def test_the_workgroup_goes_by_the_overrides() -> None:
    kernel = kernel_source("reduce/rms_norm_wide", {})
    assert kernel.workgroup(()) == 256
    assert kernel.workgroup((("OTHER", 1.0), ("WORKGROUP", 32))) == 32


def test_every_kernels_workgroup_can_be_read() -> None:
    for name in KERNELS:
        for kernel in all_ways(name):
            assert kernel.workgroup(()) >= 1


def test_workgroup_memory_is_what_the_entry_point_comes_to_use() -> None:
    plugs = {"weight": "f32", "epilogue": "rows", "output": "residual"}
    product = kernel_source("linear/gemm_wide", plugs)
    assert product.workgroup_bytes(()) == 2 * 4 * 128 * 16
    norm = kernel_source("reduce/rms_norm_wide", {})
    assert norm.workgroup_bytes((("WORKGROUP", 32),)) == 32 * 4
    heads = kernel_source("attention/qkv_heads_wide", {"store": "f32", "lanes": "memory"})
    assert heads.workgroup_bytes(()) == 128 * 4, "it adds up single values, not vectors"
    alone = {**plugs, "block": "alone", "token": "plain"}
    assert kernel_source("linear/gemv", alone).workgroup_bytes(()) == 0


STRUCTS = """
struct Inner { first: vec2u, last: f32 }
struct Outer {
  one: u32,  // padding: 4 bytes
  inner: array<Inner, COUNT * 2u>,
  wide: vec4f,
  two: u32,
  rest: array<u32>,
}
"""


@pytest.mark.parametrize(
    ("kind", "extent"), [("u32", (4, 4)), ("Inner", (16, 8)), ("Outer", (80, 16))]
)
def test_structs_are_laid_out_as_wgsl_does_it(kind: str, extent: tuple[int, int]) -> None:
    assert extent_of(kind, STRUCTS, {"COUNT": 1}) == extent


def test_a_type_of_unknown_size_is_an_error() -> None:
    with pytest.raises(GraphError, match="the type Other is neither known nor a struct"):
        extent_of("Other", STRUCTS, {})
    with pytest.raises(GraphError, match=r"Outer.inner: COUNT \* 2u cannot be read"):
        extent_of("Outer", STRUCTS, {})


def test_where_a_member_lies_is_read_from_the_file() -> None:
    assert offset_of("sampling/sample", "State", "tokens") == 12
    assert offset_of("copies/strided_copy", "Params", "rank") == (8 + 2) * 16
    columns = FILES["linear/fragments/int8_token"].source
    assert extent_of("Columns", columns, {}) == (112, 16)


def test_storage_buffers_are_counted_and_uniforms_are_not() -> None:
    assert kernel_source("copies/strided_copy", {}).storage_buffers == 2


def test_portable_kernels_fit_every_device() -> None:
    """A workgroup may have 128 invocations and 16 KiB at WebGPU's compatibility level."""
    for name in KERNELS:
        # graph/builder.py checks these, by the device.
        if name.endswith(("_wide", "_int8", "_f32", "_f16", "_few", "_matrices")):
            continue
        for kernel in all_ways(name):
            if any("size" in file.slots for file in kernel.files):
                continue
            assert kernel.workgroup(()) <= 128
            assert kernel.workgroup_bytes(()) <= 16 << 10


def test_every_kernels_workgroup_memory_can_be_read() -> None:
    for name in KERNELS:
        for kernel in all_ways(name):
            assert kernel.workgroup_bytes(()) <= 32 << 10


def test_functions_of_one_element_are_those_of_the_shaders() -> None:
    assert {function.name for function in elementwise.Function} == set(elementwise.CODES)
    assert len(set(elementwise.CODES.values())) == len(elementwise.CODES)
    assert len(set(CODES.values())) == len(CODES)


def test_kernels_in_halves_alone_need_halves_of_the_device() -> None:
    """Software adapters thus run in these tests all others that adapters with shader-f16 get."""
    sources = {way.label: way.source for name in KERNELS for way in all_ways(name)}
    assert any("unpack2x16float" in source for source in sources.values())
    in_halves = {label for label, source in sources.items() if "enable f16" in source}
    assert in_halves
    in_halves_by_name = re.compile(r"linear/(gem[mv](_mixed)?_f16|gemm_matrices)\+")
    assert all(in_halves_by_name.match(label) for label in in_halves)
    assert all(sources[label].startswith(("//", "enable")) for label in in_halves)
