"""Parameters lie as the shader has them, and what changed of them goes up in one range."""

import struct

import numpy as np
import pytest

from py_runtime.base.errors import GraphError
from py_runtime.live.uniforms import ParamsLayout, UniformArena, params_layout
from tests.live.small_kernel import kernel_with


def test_parameters_are_packed_as_the_shader_has_them() -> None:
    layout = ParamsLayout(
        kernel_with(
            "struct Params { sizes: array<vec4u, ROWS>, // a: u32\n scale: f32, shift: i32 }"
        )
    )
    assert layout.names == ["sizes", "scale", "shift"]
    packed = layout.pack({"shift": -7, "scale": 0.5, "sizes": tuple(range(8))})
    assert packed == struct.pack("<8Ifi8x", *range(8), 0.5, -7)


def test_members_of_a_struct_inside_are_packed_by_their_own_names() -> None:
    inner = "struct Inner { ends: vec4u, a: u32, b: f32, c: u32, d: i32 }\n"
    layout = ParamsLayout(kernel_with(inner + "struct Params { inner: Inner, e: u32, f: f32 }"))
    assert layout.offsets == {"ends": 0, "a": 16, "b": 20, "c": 24, "d": 28, "e": 32, "f": 36}
    packed = layout.pack(
        {"f": 0.5, "e": 9, "d": -4, "c": 3, "b": 2.5, "a": 1, "ends": (5, 6, 7, 8)}
    )
    assert packed == struct.pack("<4IIfIiIf8x", 5, 6, 7, 8, 1, 2.5, 3, -4, 9, 0.5)


@pytest.mark.parametrize(
    ("params", "fault"),
    [
        (
            "struct Inner { a: u32 }\nstruct Params { inner: Inner, b: u32 }",
            "'inner' of Params must begin and end at a multiple of 16 bytes, as a struct inside a "
            "uniform does; it lies at 0 to 4",
        ),
        (
            "struct Inner { a: vec4u }\nstruct Params { b: u32, inner: Inner }",
            "shader 'toy': put 'a' at the start of Inner",
        ),
        (
            "struct Inner { a: vec4u }\nstruct Params { inner: Inner, a: u32 }",
            "shader 'toy': Params has two members 'a'",
        ),
        (
            "struct Params { a: vec2u }",
            "'a' of Params is of the type vec2u, which cannot be packed",
        ),
        (
            "struct Inner { a: vec4u }\nstruct Params { inner: array<Inner, 2> }",
            "'inner' of Params is of the type Inner, which cannot be packed",
        ),
        ("fn main() {}", "shader 'toy' has no `struct Params`"),
        ("struct Params { a: u32, b: vec4f }", "shader 'toy': put 'b' at the start of Params"),
        ("struct Params { a: array<u32, 4> }", "'a' of Params must be an array of vec4"),
        ("struct Params { a: array<vec4u, LANES> }", "with a length that can be read"),
    ],
)
def test_a_layout_that_cannot_be_told_is_refused(params: str, fault: str) -> None:
    with pytest.raises(GraphError) as caught:
        ParamsLayout(kernel_with(params))
    assert fault in str(caught.value)


@pytest.fixture
def arena() -> UniformArena:
    """Three slots, which the GPU has seen."""
    arena = UniformArena(256)
    assert [arena.reserve(nbytes) for nbytes in (16, 300, 4)] == [0, 256, 768]
    arena.seal()
    assert dirty(arena) == (0, bytes(1024)), "at first the GPU has seen nothing"
    arena.uploaded()
    return arena


def dirty(arena: UniformArena) -> tuple[int, bytes] | None:
    found = arena.dirty()
    return found and (found[0], found[1].tobytes())


def test_what_was_written_is_one_range_until_it_is_uploaded(arena: UniformArena) -> None:
    assert dirty(arena) is None
    arena.write(768, b"last")
    arena.write(256, b"middle  ")
    assert dirty(arena) == (256, b"middle  ".ljust(512, b"\0") + b"last")
    arena.uploaded()
    assert dirty(arena) is None


def test_of_bytes_that_are_put_back_those_that_differ_go_up(arena: UniformArena) -> None:
    before = arena.mirror.copy()
    arena.write(256, b"middle  ")
    arena.uploaded()
    arena.replace(before)
    assert dirty(arena) == (256, bytes(8))
    np.testing.assert_array_equal(arena.mirror, before)
    arena.uploaded()
    arena.replace(before)
    assert dirty(arena) is None


@pytest.mark.parametrize(
    ("members", "size"),
    [
        ("a: u32", 16),
        ("a: u32, b: i32, c: f32, d: u32", 16),
        ("a: u32, b: i32, c: f32, d: u32, e: u32", 32),
        ("a: vec4i", 16),
        ("a: vec4f, b: u32", 32),
        ("a: u32, b: u32, c: u32, d: u32, e: vec4u", 32),
    ],
)
def test_parameters_take_whole_rows_of_16_bytes(members: str, size: int) -> None:
    assert ParamsLayout(kernel_with(f"struct Params {{ {members} }}")).struct.size == size


@pytest.mark.parametrize(
    ("kind", "value", "packed"),
    [
        ("u32", 2**32 - 1, "<I12x"),
        ("i32", -(2**31), "<i12x"),
        ("f32", 0.1, "<f12x"),
        ("vec4u", (1, 2, 3, 2**32 - 1), "<4I"),
        ("vec4i", (1, -2, 3, -4), "<4i"),
        ("vec4f", (0.1, -2.0, 3.0, 4.0), "<4f"),
    ],
)
def test_each_kind_of_parameter_is_packed(kind: str, value: object, packed: str) -> None:
    layout = ParamsLayout(kernel_with(f"struct Params {{ a: {kind} }}"))
    values = value if isinstance(value, tuple) else (value,)
    assert layout.pack({"a": value}) == struct.pack(packed, *values)


def test_a_layout_is_read_once_for_a_kernel() -> None:
    kernel = kernel_with("struct Params { a: u32 }")
    assert params_layout(kernel) is params_layout(kernel)


def test_an_arena_without_slots_can_still_be_bound() -> None:
    arena = UniformArena(256)
    arena.seal()
    assert dirty(arena) == (0, bytes(16))
    arena.uploaded()
    assert dirty(arena) is None


def test_slots_are_as_far_apart_as_the_device_wants() -> None:
    arena = UniformArena(32)
    assert [arena.reserve(nbytes) for nbytes in (32, 33, 31, 1)] == [0, 32, 96, 128]
    assert arena.size == 160


@pytest.mark.parametrize("at", [0, 252, 1020])
def test_a_single_word_that_differs_goes_up_alone(arena: UniformArena, at: int) -> None:
    other = arena.mirror.copy()
    other[at + 3] = 9
    arena.replace(other)
    assert dirty(arena) == (at, b"\0\0\0\x09")
