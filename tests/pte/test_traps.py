"""Traps in arguments and constants, in files written by hand: each is right only if it is known."""

from typing import Any

import numpy as np
import pytest

from tests.pte.written import (
    Table,
    call_delegate,
    cut_at_a_symint,
    delegate,
    f32,
    integer,
    method,
    one_vector,
    ptd,
    pte,
    tensor,
    union,
    vk_bool,
    vk_bytes,
    vk_call,
    vk_double,
    vk_graph,
    vk_int,
    vk_ints,
    vk_named,
    vk_null,
    vk_tensor,
)

A = np.array([10, 20, 30, 40], np.float32)
B = np.array([1, 2, 3, 4], np.float32)
DOUBLE_OF = "aten.add.Tensor"  # x + x


def two_vectors(graph: bytes, *args: int, **more: Any) -> bytes:
    """forward(a, b), f32 [4], by one delegate."""
    return pte(
        [
            method(
                "forward",
                [tensor("f32", 4)] * 3,
                [0, 1],
                [2],
                [call_delegate(0, *args)],
                [delegate(0)],
            )
        ],
        [graph, *more.pop("segments", [])],
        **more,
    )


# Arguments ---------------------------------------------------------------------------------------


def test_a_delegate_is_called_in_its_own_order(run: Any) -> None:
    values = [vk_tensor("f32", 4), vk_tensor("f32", 4), vk_int(1), vk_tensor("f32", 4)]
    graph = vk_graph(values, [vk_call("aten.sub.Tensor", 0, 1, 2, 3)], [1, 0], [3])
    ((difference,),) = run(two_vectors(graph, 1, 0, 2), [A, B])
    assert difference.tolist() == [9, 18, 27, 36]


def test_whole_doubles_stand_for_ints(run: Any) -> None:
    """The exporter stores 0 and 0.0 once: here it is dim and index, and 1.0 is alpha."""
    values = [
        vk_tensor("f32", 4),
        vk_tensor("f32", 4),
        vk_double(1.0),
        vk_tensor("f32", 4),
        vk_ints(2, 2),
        vk_tensor("f32", 2, 2),
        vk_double(0.0),
        vk_tensor("f32", 2),
    ]
    chain = [
        vk_call("aten.sub.Tensor", 0, 1, 2, 3),
        vk_call("aten.view_copy.default", 3, 4, 5),
        vk_call("aten.select_copy.int", 5, 6, 6, 7),
    ]
    plan = method(
        "forward",
        [tensor("f32", 4), tensor("f32", 4), tensor("f32", 2)],
        [0, 1],
        [2],
        [call_delegate(0, 0, 1, 2)],
        [delegate(0)],
    )
    ((row,),) = run(pte([plan], [vk_graph(values, chain, [0, 1], [7])]), [A, B])
    assert row.tolist() == [9, 18]


def test_the_seq_len_of_attention_is_not_believed(run: Any) -> None:
    """The exporter writes 1 for it, whatever the queries are; Int 0 is dropout and position."""
    tokens, heads, width, room = 3, 2, 4, 8
    values = [
        vk_tensor("f32", 1, tokens, heads, width),
        vk_tensor("f32", 1, tokens, heads, width),
        vk_tensor("f32", 1, tokens, heads, width),
        vk_tensor("f32", 1, room, heads, width, constant=0),
        vk_tensor("f32", 1, room, heads, width, constant=1),
        vk_int(0),
        vk_int(1),
        vk_null(),
        vk_bool(True),
        vk_tensor("f32", 1, tokens, heads, width),
    ]
    call = vk_call("sdpa_with_kv_cache.default", 0, 1, 2, 3, 4, 5, 6, 7, 5, 8, 7, 9)
    caches = room * heads * width * 4
    graph = vk_graph(values, [call], [0, 1, 2], [9], [vk_named("zeros", caches)] * 2)
    plan = method(
        "forward",
        [tensor("f32", 1, tokens, heads, width)] * 4,
        [0, 1, 2],
        [3],
        [call_delegate(0, 0, 1, 2, 3)],
        [delegate(0)],
    )
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, 1, tokens, heads, width)).astype(np.float32)
    ((out,),) = run(pte([plan], [graph, bytes(caches)], {"zeros": 1}), [q, k, v])
    np.testing.assert_allclose(out, causal_attention(q, k, v), rtol=1e-5, atol=1e-5)


def causal_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Attend causally over q, k, v: [1, S, H, D]."""
    scores = np.einsum("bshd,bchd->bhsc", q, k) / np.sqrt(q.shape[-1])
    scores[..., ~np.tri(q.shape[1], dtype=bool)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bhsc,bchd->bshd", weights / weights.sum(-1, keepdims=True), v)


@pytest.mark.parametrize("stored", [union(1, {}), integer(0)], ids=["null", "int"])
def test_a_symint_is_an_input(run: Any, stored: Table) -> None:
    """The exporter writes null for it."""
    plan = method(
        "forward",
        [tensor("f32", 4), stored, tensor("f32", 4, dynamic=True)],
        [0, 1],
        [2],
        [call_delegate(0, 0, 1, 2)],
        [delegate(0)],
    )
    (one,), (three,) = run(pte([plan], [cut_at_a_symint()]), [A, 1], [A, 3])
    assert one.tolist() == [20, 30, 40]
    assert three.tolist() == [40]


# Constants ---------------------------------------------------------------------------------------


def test_caches_of_equal_content_have_a_buffer_each(run: Any) -> None:
    """Both start as the same named zeros, one of them through a prepack; a third is only read."""
    rows, shape = (1, 1, 1, 4), (1, 2, 1, 4)
    values = [
        vk_tensor("f32", *rows),
        vk_tensor("f32", *rows),
        vk_tensor("f32", *shape, constant=0),
        vk_tensor("f32", *shape, constant=1),
        vk_tensor("f32", *shape),  # the prepacked one
        vk_tensor("f32", *shape, constant=2),
        vk_int(1),
        *[vk_tensor("f32", *shape)] * 3,
    ]
    chain = [
        vk_call("et_vk.prepack.default", 3, 4),
        vk_call("update_cache.default", 0, 2, 6, 7),
        vk_call("update_cache.default", 1, 4, 6, 8),
        vk_call(DOUBLE_OF, 5, 5, 6, 9),
    ]
    graph = vk_graph(values, chain, [0, 1], [7, 8, 9], [vk_named("zeros", 32)] * 3)
    plan = method(
        "forward",
        [*[tensor("f32", *rows)] * 2, *[tensor("f32", *shape)] * 3],
        [0, 1],
        [2, 3, 4],
        [call_delegate(0, 0, 1, 2, 3, 4)],
        [delegate(0)],
    )
    a, b = A.reshape(rows), B.reshape(rows)
    ((first, second, untouched),) = run(pte([plan], [graph, bytes(32)], {"zeros": 1}), [a, b])
    assert first.ravel().tolist() == [0, 0, 0, 0, 10, 20, 30, 40]
    assert second.ravel().tolist() == [0, 0, 0, 0, 1, 2, 3, 4]
    assert not untouched.any()


def test_a_constant_number_that_is_left_out_is_0(run: Any) -> None:
    values = [
        vk_tensor("f32", 4),
        vk_tensor("f32", 4, constant=None),
        vk_int(1),
        vk_tensor("f32", 4),
    ]
    chain = [vk_call(DOUBLE_OF, 0, 1, 2, 3)]
    graph = vk_graph(values, chain, [0], [3], [vk_named("k", 16)])
    ((total,),) = run(one_vector(graph, segments=[f32(5, 6, 7, 8)], named={"k": 1}), [A])
    assert total.tolist() == [15, 26, 37, 48]


def test_bools_are_bytes_in_the_file_even_under_a_key_that_others_have(run: Any) -> None:
    """16 bytes: sixteen bools, or four floats of which two are 2.4e-38."""
    data = bytes([1, 1, 1, 1, 0, 0, 0, 0] * 2)
    values = [
        vk_tensor("f32", 16),
        vk_tensor("bool", 16, constant=0),
        vk_tensor("f32", 4, constant=0),
        vk_ints(16),
        vk_tensor("f32", 4, 4),
        vk_ints(4, 4),
        vk_int(1),
        vk_tensor("f32", 4, 4),
        vk_tensor("f32", 16),
        vk_tensor("f32", 16),
    ]
    chain = [
        vk_call("aten.view_copy.default", 0, 5, 4),
        vk_call("aten.mul.Tensor", 4, 2, 7),
        vk_call("aten.view_copy.default", 7, 3, 8),
        vk_call("aten.where.self", 1, 0, 8, 9),
    ]
    graph = vk_graph(values, chain, [0], [9], [vk_named("k", 16)])
    call = call_delegate(0, 0, 1)
    plan = method("forward", [tensor("f32", 16)] * 2, [0], [1], [call], [delegate(0)])
    x = np.arange(1, 17, dtype=np.float32) * 1e37
    ((out,),) = run(pte([plan], [graph, data], {"k": 1}), [x])
    scaled = (x.reshape(4, 4) * np.frombuffer(data, np.float32)).ravel()
    np.testing.assert_allclose(out, np.where(np.frombuffer(data, bool), x, scaled), rtol=1e-5)


@pytest.mark.parametrize("place", ["named", "blob", "inline", "ptd"])
def test_constants_come_from_wherever_they_lie(run: Any, place: str) -> None:
    weights = f32(5, 6, 7, 8)
    values = [vk_tensor("f32", 4), vk_tensor("f32", 4, constant=0), vk_int(1), vk_tensor("f32", 4)]
    is_named = place in ("named", "ptd")
    constant = vk_named("key", 16) if is_named else vk_bytes(16, 16)
    graph = vk_graph(
        values,
        [vk_call(DOUBLE_OF, 0, 1, 2, 3)],
        [0],
        [3],
        [constant],
        b"" if is_named else bytes(16) + weights,
    )
    call = call_delegate(0, 0, 1)
    blob = delegate(0, inline=place == "inline")
    plan = method("forward", [tensor("f32", 4)] * 2, [0], [1], [call], [blob])
    named = {"key": 1} if place == "named" else {}
    segments = {"named": [graph, weights], "inline": []}.get(place, [graph])
    file = pte([plan], segments, named, inline=[graph] if place == "inline" else [])
    data = ptd([b"other", weights], {"other": 0, "key": 1}) if place == "ptd" else None
    ((total,),) = run(file, [A], data=data)
    assert total.tolist() == [15, 26, 37, 48]


def test_a_file_without_an_extended_header_has_no_segments(run: Any) -> None:
    values = [vk_tensor("f32", 4), vk_int(1), vk_tensor("f32", 4)]
    graph = vk_graph(values, [vk_call(DOUBLE_OF, 0, 0, 1, 2)], [0], [2])
    blob, call = delegate(0, inline=True), call_delegate(0, 0, 1)
    plan = method("forward", [tensor("f32", 4)] * 2, [0], [1], [call], [blob])
    file = pte([plan], inline=[graph])
    assert file[8:12] == b"eh00"
    ((total,),) = run(file[:8] + bytes(32) + file[40:], [A])
    assert total.tolist() == [20, 40, 60, 80]


def test_rows_of_4_bit_weights_are_padded_to_8(run: Any) -> None:
    """K = 12 is stored as 16 nibbles; one group, and scales [groups, N] with N = 4."""
    rng = np.random.default_rng(1)
    q = rng.integers(-8, 8, (4, 12))
    scales = rng.uniform(0.1, 1, (1, 4)).astype(np.float32)
    nibbles = np.full((4, 16), 8)
    nibbles[:, :12] = q + 8
    packed = (nibbles[:, ::2] | nibbles[:, 1::2] << 4).astype(np.uint8)  # [4, 8]
    values = [
        vk_tensor("f32", 2, 12),
        vk_tensor("u8", 4, 8, constant=0),
        vk_tensor("f32", 1, 4, constant=1),
        vk_int(12),
        vk_null(),
        vk_tensor("f32", 2, 4),
    ]
    chain = [vk_call("et_vk.linear_q4gsw.default", 0, 1, 2, 3, 4, 5)]
    constants = [vk_named("w", packed.nbytes), vk_named("s", scales.nbytes)]
    graph = vk_graph(values, chain, [0], [5], constants)
    plan = method(
        "forward",
        [tensor("f32", 2, 12), tensor("f32", 2, 4)],
        [0],
        [1],
        [call_delegate(0, 0, 1)],
        [delegate(0)],
    )
    file = pte([plan], [graph, packed.tobytes(), scales.tobytes()], {"w": 1, "s": 2})
    x = rng.standard_normal((2, 12)).astype(np.float32)
    ((out,),) = run(file, [x])
    np.testing.assert_allclose(out, x @ (q * scales.T).T, rtol=1e-4, atol=1e-4)
