"""Conditions of the passes, each violated alone: the program then stays as it was.

With nothing violated the fused op has the arguments of what it replaces.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from py_runtime.base.dtypes import F16, F32
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.ops.registry import REGISTRY
from py_runtime.passes import (
    fold_norms,
    fold_sums,
    fuse_attend_linear,
    fuse_gated_part,
    fuse_norm_residual,
    fuse_qkv,
    fuse_residual,
    fuse_swiglu,
    run_passes,
    type_caches,
)
from py_runtime.passes.chain import Chain
from py_runtime.program import OpCall, Program, TensorValue
from py_runtime.program.writer import Ref
from tests.passes.test_patterns import ROWS, TARGET, TOKENS, WIDTH, Layers, fused, names

HEADS, KV_HEADS, HEAD_DIM, CONTEXT = 4, 2, 16, 32
DIMS = (1, TOKENS, WIDTH)


def args_of(program: Program, op: str) -> dict[str, Any]:
    """Return the arguments of the only call of an op: ids, lists of them, and plain values."""
    (call,) = [call for call in program.ops if call.name.split(".")[1] == op]
    found: dict[str, Any] = {}
    for name, value_id in zip(REGISTRY[call.name].args, call.args, strict=True):
        value = program.values[value_id]
        ids = getattr(value, "ids", None)
        plain = getattr(value, "value", None)
        found[name] = value_id if isinstance(value, TensorValue) else ids or plain
    return found


# Attention ----------------------------------------------------------------------------------------


class Attention(Layers):
    """Attention that fills its caches, as exporters write it, with one thing changed."""

    def __init__(self, **changed: Any) -> None:
        super().__init__()
        self.given = changed
        self.hidden = self.x()
        self.start = self.symint_input("start_pos")
        q, k = (self.heads(name) for name in "qk")
        v = self.heads("v")
        if changed.get("v_norm"):
            weight = self.constant("vn", np.ones(HEAD_DIM, np.float32))
            given = weight if changed["v_norm"] == "weighted" else None
            v = self.made("et_vk.rms_norm.default", self.dims("v"), v, given, 1e-4)
        if changed.get("rotary", True):
            q, k = self.turned(q, k)
        if changed.get("same"):
            k = q
        self.output(self.attended(q, k, v))
        if changed.get("read_twice"):
            self.output(self.read)

    def dims(self, name: str) -> tuple[int, ...]:
        batch = self.given.get("batch", 1)
        return (batch, TOKENS, HEADS if name == "q" else KV_HEADS, HEAD_DIM)

    def heads(self, name: str) -> Ref:
        changed = self.given
        dims = self.dims(name)
        rows = dims[2] * dims[3]
        x = self.hidden
        if changed.get("other_x") == name:
            x = self.input("other", DIMS, F32, dynamic=(1,))
        flat = self.linear(name, x, rows=rows)
        if name in changed.get("by_row", ""):
            weight = self.constant(f"{name} row", np.ones(rows, np.float32))
            given = None if changed.get("unweighted") else weight
            flat = self.made("et_vk.rms_norm.default", (1, TOKENS, rows), flat, given, 1e-5)
        op = "aten.clone.default" if changed.get("no_view") == name else "aten.view.default"
        args = () if op.endswith("clone.default") else (list(dims),)
        viewed = self.made(op, dims, flat, *args, *((None,) if not args else ()))
        self.read = flat if changed.get("read_twice") == "linear" else viewed
        if name in changed.get("by_head", ""):
            weight = self.constant(f"{name} head", np.ones(HEAD_DIM, np.float32))
            viewed = self.made("et_vk.rms_norm.default", dims, viewed, weight, 1e-6)
        return viewed

    def turned(self, q: Ref, k: Ref) -> list[Ref]:
        neighbours = self.given.get("rotary") == "neighbours"
        width = HEAD_DIM // 2 if neighbours else HEAD_DIM
        rows = TOKENS if neighbours else CONTEXT
        tables = [self.constant(name, np.zeros((rows, width), np.float32)) for name in ("c", "s")]
        out = [self.tensor(self.dims(name), F32) for name in "qk"]
        if neighbours:
            self.op("et_vk.apply_rotary_emb.default", q, k, *tables, out)
        else:
            table_start = self.given.get("table_start", self.start)
            self.op("et_vk.apply_rotary_emb_hf.default", q, k, *tables, table_start, out)
        return out

    def attended(self, q: Ref, k: Ref, v: Ref) -> Ref:
        changed = self.given
        cache = (1, CONTEXT, KV_HEADS, HEAD_DIM)
        k_cache, v_cache = (self.state(name, cache, F32) for name in ("k_cache", "v_cache"))
        if changed.get("cache") == "one":
            v_cache = k_cache
        if changed.get("cache") in ("k", "v"):
            put = self.input("cache", cache, F32)
            k_cache, v_cache = (put, v_cache) if changed["cache"] == "k" else (k_cache, put)
        how = (changed.get("dropout", 0.0), changed.get("causal", True), 0.25)
        args = (q, k, v, k_cache, v_cache, self.start, 1, changed.get("mask"), *how)
        return self.made("sdpa_with_kv_cache.default", self.dims("q"), *args)


FUSED = ["qkv_rotary_cache", "attend_kv_cache"]


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"rotary": False},
        {"rotary": "neighbours"},
        {"causal": None},
        {"by_head": "qk"},
        {"by_row": "qk"},
        {"v_norm": "plain"},
        {"v_norm": "plain", "by_head": "qk"},
    ],
    ids=str,
)
def test_attention_that_is_fused(changed: dict[str, Any]) -> None:
    assert fused(Attention(**changed), fuse_qkv.run) == FUSED


@pytest.mark.parametrize(
    "changed",
    [
        *({"cache": "one"}, {"cache": "k"}, {"cache": "v"}, {"same": True}),
        *({"dropout": 0.5}, {"causal": False}, {"v_norm": "weighted"}),
        *({"other_x": "q"}, {"other_x": "k"}, {"other_x": "v"}),
        *({"by_head": "q"}, {"by_head": "k"}, {"by_head": "v"}, {"by_head": "qkv"}),
        *({"by_row": "q"}, {"by_row": "k"}, {"by_row": "qkv"}, {"by_row": "qk", "v_norm": "plain"}),
        *({"by_row": "q", "by_head": "k"}, {"by_row": "qk", "unweighted": True}),
        *({"no_view": "q"}, {"no_view": "v"}, {"read_twice": "view"}, {"read_twice": "linear"}),
    ],
    ids=str,
)
def test_attention_that_stays(changed: dict[str, Any]) -> None:
    writer = Attention(**changed)
    assert fused(writer, fuse_qkv.run) == names(writer.program())


def test_the_arguments_of_fused_attention() -> None:
    writer = Attention(by_head="qk", v_norm="plain", table_start=3)
    before = writer.program()
    program = run_passes(before, TARGET, [fuse_qkv.run])
    found = args_of(program, "qkv_rotary_cache")
    rotary = next(call for call in before.ops if "rotary" in call.name)
    linears = [call for call in before.ops if "linear" in call.name]
    assert found["x"] == writer.hidden.id
    assert found["weights"] == tuple(call.args[1] for call in linears)
    assert (found["kind"], found["scales"], found["biases"]) == ("f32", None, None)
    assert [found[name] for name in ("norm", "eps", "window")] == [None] * 3
    assert [found[name] for name in ("q_eps", "k_eps", "v_eps")] == [1e-6, 1e-6, 1e-4]
    assert (found["cos"], found["sin"], found["table_start"]) == (*rotary.args[2:4], 3)
    assert found["neighbours"] is False
    attended = args_of(program, "attend_kv_cache")
    assert attended["scale"] == 0.25
    assert attended["q"] == found["out"]
    assert [attended[name] for name in ("k_cache", "v_cache")] == [
        found[name] for name in ("k_cache", "v_cache")
    ]


def test_the_tables_of_neighbours_begin_at_their_first_row() -> None:
    for rotary, neighbours, start in (("neighbours", True, 0), (False, False, None)):
        program = run_passes(Attention(rotary=rotary).program(), TARGET, [fuse_qkv.run])
        found = args_of(program, "qkv_rotary_cache")
        assert found["neighbours"] is neighbours
        assert found["table_start"] == start
        assert (found["cos"] is None) is (start is None)


# Gates and sums -----------------------------------------------------------------------------------


def gate(order: str = "gate up", activation: str = "silu", rows: int = ROWS) -> Layers:
    writer = Layers()
    x = writer.x()
    dims = (1, TOKENS, ROWS)
    linear = writer.linear("gate", x)
    if activation == "silu":
        gated = writer.made("aten.silu.default", dims, linear)
    else:
        gated = writer.made("aten.gelu.default", dims, linear, activation)
    plain = writer.linear("up", x, rows=rows)
    operands = [gated, plain] if order == "gate up" else [plain, gated]
    writer.output(writer.made("aten.mul.Tensor", dims, *operands))
    return writer


@pytest.mark.parametrize("order", ["gate up", "up gate"])
@pytest.mark.parametrize(
    ("activation", "op"), [("silu", "swiglu"), ("tanh", "geglu"), ("none", None)]
)
def test_gates(order: str, activation: str, op: str | None) -> None:
    writer = gate(order, activation)
    before = writer.program()
    program = run_passes(before, TARGET, [fuse_swiglu.run])
    if op is None:
        assert names(program) == names(before)
        return
    assert names(program) == [op]
    weights = [call.args[1] for call in before.ops if "linear" in call.name]
    found = args_of(program, op)
    assert found["weights"] == tuple(weights), "the gate comes first"
    assert found["x"] == before.ops[0].args[0]


def test_a_gate_of_another_width_stays() -> None:
    writer = gate(rows=1)
    assert fused(writer, fuse_swiglu.run) == names(writer.program())


def linear_of(columns: int, dims: int = 2, constant: bool = True) -> Layers:
    """X + linear(x), whose weight has so many columns."""
    writer = Layers()
    x = writer.input("x", (1, TOKENS, columns), F32, dynamic=(1,))
    shape = (columns, columns) if dims == 2 else (columns * columns,)
    if constant:
        weight = writer.constant("w", np.zeros(shape, np.float32))
    else:
        weight = writer.input("w", shape, F32)
    out = writer.made("aten.linear.default", (1, TOKENS, columns), x, weight, None)
    writer.output(writer.made("aten.add.Tensor", (1, TOKENS, columns), x, out, 1))
    return writer


@pytest.mark.parametrize("columns", [4, 8])
def test_a_linear_is_taken_by_its_columns(columns: int) -> None:
    assert fused(linear_of(columns), fuse_residual.run) == ["linear_residual"]


@pytest.mark.parametrize(
    "writer",
    [linear_of(6), linear_of(8, constant=False), linear_of(8, dims=1)],
    ids=["columns", "no constant", "one dim"],
)
def test_a_linear_that_kernels_do_not_take_stays(writer: Layers) -> None:
    assert fused(writer, fuse_residual.run) == ["linear", "add"]


def norm_and_sum(factor: str = "", alpha: int = 1, weighted: bool = True) -> Layers:
    writer = Layers()
    x = writer.x()
    weight = writer.constant("n", np.ones(WIDTH, np.float32)) if weighted else None
    normed = writer.made("et_vk.rms_norm.default", DIMS, x, weight, 1e-5)
    out = writer.made("aten.add.Tensor", DIMS, x, normed, alpha)
    if factor:
        size = (2,) if factor == "two" else (1,)
        if factor == "input":
            number = writer.input("factor", size, F32)
        else:
            number = writer.constant("factor", np.ones(size, np.float32))
        operands = [number, out] if factor == "first" else [out, number]
        name = "aten.div.Tensor" if factor == "divided" else "aten.mul.Tensor"
        out = writer.made(name, DIMS, *operands)
    writer.output(out)
    return writer


@pytest.mark.parametrize(
    ("changed", "left"),
    [
        ({}, ["norm_residual"]),
        ({"factor": "one"}, ["norm_residual"]),
        ({"factor": "two"}, ["norm_residual", "mul"]),
        ({"factor": "first"}, ["norm_residual", "mul"]),
        ({"factor": "input"}, ["norm_residual", "mul"]),
        ({"factor": "divided"}, ["norm_residual", "div"]),
        ({"alpha": 2}, ["rms_norm", "add"]),
        ({"weighted": False}, ["rms_norm", "add"]),
    ],
)
def test_norms_and_sums(changed: dict[str, Any], left: list[str]) -> None:
    assert fused(norm_and_sum(**changed), fuse_norm_residual.run) == left


def normed_gate(weighted: bool = True, normed_already: bool = False, other: bool = False) -> Layers:
    writer = Layers()
    x = writer.x()
    weight = writer.constant("n", np.ones(WIDTH, np.float32)) if weighted else None
    normed = writer.made("et_vk.rms_norm.default", DIMS, x, weight, 1e-5)
    args: list[Any] = [x if other else normed, None, None]
    if normed_already:
        args[1:] = [writer.constant("own", np.ones(WIDTH, np.float32)), 1e-6]
    both = [writer.constant(name, np.zeros((ROWS, WIDTH), np.float32)) for name in ("g", "u")]
    args += ["f32", both, None, 32, None]
    writer.output(writer.made("inpage.swiglu.default", (1, TOKENS, ROWS), *args))
    if other:
        writer.output(normed)
    return writer


@pytest.mark.parametrize(
    ("changed", "is_folded"),
    [
        ({}, True),
        ({"weighted": False}, False),
        ({"normed_already": True}, False),
        ({"other": True}, False),
    ],
)
def test_norms_before_gates(changed: dict[str, bool], is_folded: bool) -> None:
    writer = normed_gate(**changed)
    program = run_passes(writer.program(), TARGET, [fold_norms.run])
    assert names(program) == (["swiglu"] if is_folded else ["rms_norm", "swiglu"])
    if is_folded:
        norm = writer.program().ops[0]
        found = args_of(program, "swiglu")
        assert (found["x"], found["norm"]) == norm.args[:2]
        assert found["eps"] == 1e-5


def test_sums_fold_only_into_rows_of_whole_quads() -> None:
    for width, left in ((8, ["swiglu"]), (6, ["norm_residual", "swiglu"])):
        writer = Layers()
        dims = (1, TOKENS, width)
        x = writer.input("x", dims, F32, dynamic=(1,))
        norm = writer.constant("n", np.ones(width, np.float32))
        total = writer.made("inpage.norm_residual.default", dims, x, norm, 1e-5, x, None)
        both = [writer.constant(name, np.zeros((ROWS, width), np.float32)) for name in ("g", "u")]
        args = (total, None, None, "f32", both, None, 32, None)
        writer.output(writer.made("inpage.swiglu.default", (1, TOKENS, ROWS), *args))
        assert fused(writer, fold_sums.run) == left


# Caches -------------------------------------------------------------------------------------------

F16_TARGET = KernelTarget(lanes=4, storage_buffers=10, kv="f16")


def caches(program: Program) -> list[TensorValue]:
    return [value for value in program.values if isinstance(value, TensorValue) and value.state]


def test_caches_are_halved_where_the_target_has_halves() -> None:
    program = Attention().program()
    assert {cache.dtype for cache in caches(run_passes(program, TARGET, [type_caches.run]))} == {
        F32
    }
    halved = run_passes(program, F16_TARGET, [type_caches.run])
    assert {cache.dtype for cache in caches(halved)} == {F16}


def test_a_cache_that_is_an_output_and_its_partner_stay() -> None:
    program = Attention().program()
    cache = next(at for at, value in enumerate(program.values) if value in caches(program))
    seen = replace(program, outputs=(*program.outputs, cache))
    assert {each.dtype for each in caches(type_caches.run(seen, F16_TARGET))} == {F32}


@pytest.mark.parametrize(
    ("dims", "dtype"), [((1, CONTEXT, 2, 16), F16), ((1, CONTEXT, 2, 6), F32), ((64, 16), F32)]
)
def test_which_states_are_caches(dims: tuple[int, ...], dtype: object) -> None:
    assert type_caches._can_be(TensorValue(F32, dims, state=True), F16) is (dtype is F16)
    assert not type_caches._can_be(TensorValue(F16, dims, state=True), F16)
    assert not type_caches._can_be(TensorValue(F32, dims), F16)
    assert type_caches._can_be(TensorValue(F32, (3, 4, 8), state=True), F16)


def test_the_caches_of_a_call() -> None:
    """None of a call of another op, and none of one that has not all of its arguments."""
    name = "inpage.attend_kv_cache.default"
    assert type_caches._pair(OpCall(name, tuple(range(10, 16)))) == (11, 12)
    assert type_caches._pair(OpCall(name, (10, 11, 12))) == ()
    update = "aten.add.Tensor"
    assert type_caches._pair(OpCall(update, tuple(range(len(REGISTRY[update].args))))) == ()


# The chain itself ---------------------------------------------------------------------------------


def test_who_reads_and_makes_values() -> None:
    writer = Layers()
    x = writer.x()
    made = writer.linear("w", x, rows=WIDTH)
    total = writer.made("aten.add.Tensor", DIMS, made, x, 1)
    writer.output(total)
    chain = Chain(writer.program())
    linear, add = writer.program().ops
    assert chain.maker_for_one(made.id, linear.name) == (0, linear)
    assert chain.maker_for_one(made.id, add.name) is None
    assert chain.maker_for_one(x.id, linear.name) is None, "nothing makes an input"
    assert chain.only_call_reading(made.id) == (1, add)
    assert chain.only_call_reading(x.id) is None, "two read it"
    assert chain.calls_reading(x.id) == [(0, linear), (1, add)]
    assert chain.calls_reading(total.id) is None, "it is an output"
    assert chain.only_call_reading(total.id) is None
    assert [found.at for found in chain.calls_of(linear.name, add.name)] == [0, 1]
    weight = linear.args[1]
    assert chain.is_read_once("w")
    assert (chain.dims(weight), chain.dims(linear.args[2])) == ((WIDTH, WIDTH), ())
    assert chain.is_null(linear.args[2])
    assert not chain.is_null(weight)
    assert (chain.number(add.args[2]), chain.number(weight)) == (1.0, None)
    assert (chain.constant(weight) is not None, chain.constant(x.id)) == (True, None)
    assert not chain.is_state(weight)
    for value, shown in ((None, None), (3, 3.0), (True, 1.0), (0.5, 0.5), ("word", None)):
        assert chain.number(chain.add(value)) == shown
    with pytest.raises(TypeError, match="cannot be a value"):
        chain.add(object())
    like = chain.add_like(x.id, (2, 3))
    assert (chain.dims(like), chain.is_state(like)) == ((2, 3), False)


def test_a_part_of_other_dims_stays() -> None:
    for parts_dims, is_fused in (((1, TOKENS, 3, WIDTH), True), ((1, 1, 3, WIDTH), False)):
        writer = Layers()
        parts = writer.input("parts", parts_dims, F32)
        gelu = writer.made("aten.gelu.default", DIMS, writer.x(), "tanh")
        part = writer.made("aten.select_copy.int", (*parts_dims[:2], WIDTH), parts, 2, 0)
        writer.output(writer.made("aten.mul.Tensor", DIMS, part, gelu))
        assert (fused(writer, fuse_gated_part.run) == ["gated_part"]) is is_fused


def test_attention_of_several_batches_keeps_its_linear() -> None:
    for batch, is_fused in ((1, True), (2, False)):
        writer = Layers()
        dims = (batch, TOKENS, 4, 16)
        q = writer.input("q", dims, F32)
        caches = [writer.state(name, (batch, 32, 2, 16), F32) for name in ("k", "v")]
        start = writer.symint_input("start")
        seen = writer.made("inpage.attend_kv_cache.default", dims, q, *caches, start, None)
        flat = writer.made("aten.view.default", (batch, TOKENS, 64), seen, [batch, TOKENS, 64])
        weight = writer.constant("o", np.zeros((WIDTH, 64), np.float32))
        out = (batch, TOKENS, WIDTH)
        writer.output(writer.made("aten.linear.default", out, flat, weight, None))
        found = fused(writer, fuse_attend_linear.run)
        assert (found == ["attend_linear"]) is is_fused
