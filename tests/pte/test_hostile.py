"""Files that lie: each is refused with a sentence of ours that says what is wrong."""

import struct
from collections.abc import Callable
from typing import Any

import pytest

from py_runtime.base.errors import GraphError
from py_runtime.graph.buffers import measure
from py_runtime.pte import PteError, PteProgram, UnsupportedPteError, open_pte
from py_runtime.pte.flatbuffer import FIXED_ITEMS, Budget
from py_runtime.pte.methods import DelegateStep
from tests.pte.lies import (
    ADD,
    LIES,
    PROGRAM_SIZE_AT,
    SOUND,
    SOUND_PTD,
    file,
    graph,
    patch_bytes,
    plan,
    values_of,
    with_graph,
)
from tests.pte.memory_source import MemorySource
from tests.pte.written import (
    Scalar,
    Table,
    Vector,
    call_delegate,
    call_kernel,
    delegate,
    f32,
    integer,
    ptd,
    pte,
    tensor,
    u32,
    union,
    vk_bytes,
    vk_call,
    vk_int,
    vk_list,
    vk_tensor,
)
from tests.runners import wait


def opened(file: bytes, data: bytes | None = None) -> PteProgram:
    files = [] if data is None else [MemorySource(data, "model.ptd")]
    return wait(open_pte(MemorySource(file), files))


def test_the_sound_file_opens() -> None:
    program = opened(SOUND)
    assert list(program.methods) == ["forward"]


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_found(lie: str) -> None:
    make, message = LIES[lie]
    with pytest.raises(PteError, match=message) as caught:
        opened(make())
    assert "\n" not in str(caught.value)


# What is sound, and not for this engine ----------------------------------------------------------


def test_everything_that_is_missing_is_named_at_once() -> None:
    chain = [vk_call("aten.convolution.default", 0, 3), vk_call("et_vk.q8ta_add.default", 0, 3)]
    other = plan(
        name="other",
        calls=[call_kernel(0, 0, 1), call_kernel(1, 0, 1), union(4, {})],
        operators=["aten::erf.out", "aten::copy_"],
        delegates=[delegate(0, "XnnpackBackend"), delegate(0, "CoreMLBackend")],
    )
    values = [*[vk_tensor("f32", 4)] * 4, vk_tensor("f64", 4)]
    with pytest.raises(UnsupportedPteError) as caught:
        opened(file(graph(chain=chain, values=values), methods=[plan(), other]))
    assert caught.value.code == "pte_unsupported"
    assert caught.value.facts() == {
        "names": [
            "a conditional jump (outside the delegate)",
            "aten.convolution.default",
            "aten::erf.out (outside the delegate)",
            "et_vk.q8ta_add.default",
            "tensors of the data type 6",
            "the backend CoreMLBackend",
            "the backend XnnpackBackend",
        ]
    }
    for name in caught.value.names:
        assert name in str(caught.value)


@pytest.mark.parametrize(
    ("unsupported", "name"),
    [
        (
            lambda: file(graph(chain=[vk_call(ADD, 0, 0, 2, 1), vk_call(ADD, 0, 1, 2, 3)])),
            "aten.add.Tensor into a stored buffer",
        ),
        (lambda: values_of(vk_tensor("f64", 4)), "tensors of the data type 6"),
        (
            lambda: file(
                graph(values=[vk_tensor("f32", 0)] * 4),
                methods=[plan(values=[tensor("f32", 0)] * 2)],
            ),
            "tensors without elements",
        ),
        (lambda: values_of(vk_tensor("i64", 4)), "tensors of the data type 7"),
        (
            lambda: file(
                methods=[plan(values=[union(5, {0: Scalar("b", 15), 2: Vector("i", [4])})] * 2)]
            ),
            "tensors of the scalar type 15",
        ),
        (
            lambda: file(
                methods=[
                    plan(
                        values=[tensor("f32", 4, buffer=1), tensor("f32", 4)],
                        inputs=[],
                    )
                ]
            ),
            "a constant or a buffer outside the delegate",
        ),
        (
            lambda: file(
                methods=[
                    plan(
                        values=[*[tensor("f32", 4)] * 3, integer(0)],
                        calls=[call_delegate(0, 0, 1), call_kernel(0, 2, 1, 3, 2)],
                        operators=["aten::copy_"],
                    )
                ]
            ),
            "aten::copy_ into a buffer of the model's",
        ),
    ],
)
def test_what_no_list_of_ops_says(unsupported: Callable[[], bytes], name: str) -> None:
    with pytest.raises(UnsupportedPteError) as caught:
        opened(unsupported())
    assert caught.value.names == [name]


# Small files that could cost much ----------------------------------------------------------------


def test_strings_and_vectors_that_overlap_are_not_read_again_and_again() -> None:
    """40,000 values, all of them one and the same list of 40,000 numbers."""
    shared = union(6, {0: Vector("q", range(40_000))})
    with pytest.raises(PteError, match=r"more than fits into it|more than 400,000 parts"):
        opened(with_graph(Table({2: [shared] * 40_000})))


def test_a_budget_can_be_spent_to_the_last_item() -> None:
    budget = Budget("model.pte", 10)
    budget.read(20)
    budget.spend(FIXED_ITEMS + 20)
    with pytest.raises(PteError, match="more than fits into it"):
        budget.spend(1)
    with pytest.raises(PteError, match="more than fits into it"):
        Budget("model.pte", 10).read(21)


def test_a_list_that_every_argument_is() -> None:
    """1,000 ops with 100 arguments, each a list of 2,000 values."""
    values = [vk_tensor("f32", 4), vk_list(*[0] * 2_000), vk_tensor("f32", 4)]
    chain = [vk_call("aten.cat.default", *[1] * 100, 2) for _ in range(1_000)]
    with pytest.raises(PteError, match="more than fits into it"):
        opened(file(graph(values=values, chain=chain, outputs=[2])))


def test_delegates_that_overlap() -> None:
    """300 inline delegates of 20 kB, each with a head of its own before one and the same graph."""
    count, head, first = 300, 64, 0xABCD0000
    body = graph()[32:].ljust(20_000, b"\0")
    heads = b""
    for at in range(count):
        rest = (count - at) * head - 4  # from the head's length field to the graph
        blob = struct.pack("<I4x4sHIIIQ", rest + len(body), b"VH00", 30, rest, len(body), 0, 0)
        heads += blob.ljust(head, b"\0")
    inline: list[Any] = [u32(first + at) for at in range(count)]
    data = pte([plan(delegates=[delegate(at, inline=True) for at in range(count)])], inline=inline)
    # The heads and the graph come last in the program, and the delegates' offsets lead there.
    end, base = struct.unpack_from("<QQ", data, PROGRAM_SIZE_AT)
    crafted = bytearray(data[:end] + heads + body)
    for at in range(count):
        place = crafted.index(struct.pack("<I", first + at))
        struct.pack_into("<I", crafted, place, end + at * head - place)
    struct.pack_into("<QQ", crafted, PROGRAM_SIZE_AT, len(crafted), base + len(crafted))
    source = MemorySource(bytes(crafted))
    with pytest.raises(PteError, match="more than fits into it"):
        wait(open_pte(source))
    assert source.bytes_read <= 3 * len(crafted)


def test_a_position_that_no_gpu_integer_holds() -> None:
    rows, cache = vk_tensor("f32", 1, 1, 1, 4), vk_tensor("f32", 1, 2, 1, 4, constant=0)
    blob = graph(
        values=[rows, cache, vk_int(2**40), vk_tensor("f32", 1, 2, 1, 4)],
        chain=[vk_call("update_cache.default", 0, 1, 2, 3)],
        constants=[vk_bytes(0, 32)],
        data=bytes(32),
    )
    ends = [tensor("f32", 1, 1, 1, 4), tensor("f32", 1, 2, 1, 4)]
    program = opened(file(blob, methods=[plan(values=ends)])).methods["forward"].delegate.program
    with pytest.raises(GraphError, match="1099511627776, which does not fit the GPU's int32"):
        measure(program)


def test_numbers_in_dims_do_not_multiply_without_end() -> None:
    huge = [2**32 - 1] * 8
    with pytest.raises(PteError, match=r"elements; at most .*smaller `max` for each dynamic dim"):
        opened(
            file(
                graph(values=[vk_tensor("f32", 4), vk_tensor("f32", *huge)], chain=[], outputs=[0])
            )
        )


# .ptd --------------------------------------------------------------------------------------------


def test_the_sound_data_is_found() -> None:
    (step,) = opened(file(named={}), SOUND_PTD).methods["forward"].steps
    assert isinstance(step, DelegateStep)
    found = step.ranges["key"]
    assert found.source.name == "model.ptd"
    assert SOUND_PTD[found.offset : found.offset + found.nbytes] == f32(1, 2, 3, 4)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not a .ptd file"),
        (SOUND, "is not a .ptd file"),
        (SOUND_PTD[:30], "is not a .ptd file"),
        (SOUND_PTD[:100], "table ends at"),
        (SOUND_PTD[:-1], "cut short"),
        (patch_bytes(SOUND_PTD, 12, "<I", 3), "table ends at"),
        (patch_bytes(SOUND_PTD, 16, "<Q", 2**63), "table ends at"),
        (patch_bytes(SOUND_PTD, 24, "<Q", 2**64 - 1), "table ends at"),
        (patch_bytes(SOUND_PTD, 32, "<Q", 0), "begins inside"),
        (ptd([f32(1)], {"key": 0}), "has 4 bytes, not 16"),
        (ptd([f32(1)], {"key": 1}), "piece of data 1, and has 1"),
        (ptd([f32(1)], {"another": 0}), "1 constants, one of which is key"),
    ],
)
def test_data_that_lies(data: bytes, message: str) -> None:
    with pytest.raises(PteError, match=message):
        opened(file(named={}), data)
