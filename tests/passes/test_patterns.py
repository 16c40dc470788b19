"""Patterns that passes fuse, and what they leave alone, read off the program."""

from collections.abc import Callable
from typing import Any

import numpy as np

import py_runtime.ops  # noqa: F401  (fills the registry)
from py_runtime.base.dtypes import F32
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.passes import (
    fold_norms,
    fold_sums,
    fuse_attend_linear,
    fuse_delta_gates,
    fuse_gated_part,
    fuse_norm_residual,
    fuse_qkv,
    fuse_residual,
    fuse_swiglu,
    run_passes,
)
from py_runtime.program import Program, check_program
from py_runtime.program.writer import ProgramWriter, Ref

TOKENS, WIDTH, ROWS = 8, 32, 64
TARGET = KernelTarget(lanes=4, storage_buffers=10)


class Layers(ProgramWriter):
    """A writer of ops over f32 weights."""

    def linear(self, name: str, x: Ref, rows: int = ROWS, columns: int = WIDTH) -> Ref:
        weight = self.constant(name, np.zeros((rows, columns), np.float32))
        return self.made("aten.linear.default", (1, TOKENS, rows), x, weight, None)

    def made(self, op: str, dims: tuple[int, ...], *args: Any) -> Ref:
        out = self.tensor(dims, F32)
        self.op(op, *args, out)
        return out

    def x(self) -> Ref:
        return self.input("x", (1, TOKENS, WIDTH), F32, dynamic=(1,))

    def norm(self, x: Ref) -> Ref:
        weight = self.constant(f"norm {x.id}", np.ones(WIDTH, np.float32))
        return self.made("et_vk.rms_norm.default", (1, TOKENS, WIDTH), x, weight, 1e-5)

    def swiglu(self, x: Ref) -> Ref:
        dims = (1, TOKENS, ROWS)
        gate = self.made("aten.silu.default", dims, self.linear("gate", x))
        return self.made("aten.mul.Tensor", dims, gate, self.linear("up", x))


def names(program: Program) -> list[str]:
    check_program(program)
    return [call.name.split(".")[1] for call in program.ops]


def fused(writer: Layers, *passes: Callable[[Program, KernelTarget], Program]) -> list[str]:
    return names(run_passes(writer.program(), TARGET, passes))


def test_a_sum_goes_into_the_linear_whichever_side_it_is_on() -> None:
    for linear_first in (True, False):
        writer = Layers()
        x = writer.x()
        operands = [writer.linear("w", x, rows=WIDTH), x]
        operands = operands if linear_first else operands[::-1]
        out = writer.made("aten.add.Tensor", (1, TOKENS, WIDTH), *operands, 1)
        writer.output(out)
        assert fused(writer, fuse_residual.run) == ["linear_residual"]


def test_a_sum_of_two_linears_takes_one_of_them() -> None:
    writer = Layers()
    x = writer.x()
    both = writer.linear("a", x), writer.linear("b", x)
    writer.output(writer.made("aten.add.Tensor", (1, TOKENS, ROWS), *both, 1))
    assert fused(writer, fuse_residual.run) == ["linear", "linear_residual"]


def test_a_sum_goes_into_experts() -> None:
    for is_read_twice in (True, False):
        writer = Layers()
        x = writer.x()
        args: list[Any] = [x, writer.linear("router", x, rows=2), None, 1, True, "softmax", 1.0]
        args.append("f32 f32 f32")
        for name, rows, columns in (
            ("gate", 2 * ROWS, WIDTH),
            ("up", 2 * ROWS, WIDTH),
            ("down", 2 * WIDTH, ROWS),
        ):
            args += [writer.constant(name, np.zeros((rows, columns), np.float32)), None, None]
        dims = (1, TOKENS, WIDTH)
        experts = writer.made("inpage.experts.default", dims, *args, 32, "silu")
        total = writer.made("aten.add.Tensor", dims, x, experts, 1)
        writer.output(*([total, experts] if is_read_twice else [total]))
        expected = ["experts", "add"] if is_read_twice else ["experts_residual"]
        assert fused(writer, fuse_residual.run) == ["linear", *expected]


def test_sums_that_are_no_residuals_stay() -> None:
    for residual_dims, alpha in (((WIDTH,), 1), ((1, TOKENS, WIDTH), 2)):
        writer = Layers()
        x = writer.x()
        other = writer.constant("other", np.zeros(residual_dims, np.float32))
        linear = writer.linear("w", x, rows=WIDTH)
        out = writer.made("aten.add.Tensor", (1, TOKENS, WIDTH), linear, other, alpha)
        writer.output(out)
        assert fused(writer, fuse_residual.run) == ["linear", "add"]


def test_a_value_that_is_an_output_too_stays() -> None:
    writer = Layers()
    x = writer.x()
    linear = writer.linear("w", x, rows=WIDTH)
    writer.output(linear, writer.made("aten.add.Tensor", (1, TOKENS, WIDTH), linear, x, 1))
    assert fused(writer, fuse_residual.run) == ["linear", "add"]


def test_swiglu_takes_its_norm_along() -> None:
    writer = Layers()
    writer.output(writer.swiglu(writer.norm(writer.x())))
    assert fused(writer, fuse_swiglu.run) == ["rms_norm", "swiglu"]
    assert fused(writer, fuse_swiglu.run, fold_norms.run) == ["swiglu"]


def test_a_norm_that_another_op_reads_stays() -> None:
    writer = Layers()
    normed = writer.norm(writer.x())
    writer.output(writer.swiglu(normed), writer.linear("other", normed))
    program = fused(writer, fuse_swiglu.run, fold_norms.run)
    assert sorted(program) == ["linear", "rms_norm", "swiglu"]


def test_gates_of_other_inputs_stay() -> None:
    writer = Layers()
    x, y = writer.x(), writer.input("y", (1, TOKENS, WIDTH), F32, dynamic=(1,))
    gate = writer.made("aten.silu.default", (1, TOKENS, ROWS), writer.linear("gate", x))
    writer.output(writer.made("aten.mul.Tensor", (1, TOKENS, ROWS), gate, writer.linear("up", y)))
    assert "swiglu" not in fused(writer, fuse_swiglu.run)


def test_weights_that_others_read_are_not_joined() -> None:
    """Joined they would be on the GPU twice. A second linear reads the data of `up` here."""
    writer = Layers()
    x = writer.x()
    writer.output(writer.swiglu(x), writer.linear("up", x))
    assert "swiglu" not in fused(writer, fuse_swiglu.run)


def test_joined_weights_stay_below_what_a_device_binds() -> None:
    writer = Layers()
    writer.output(writer.swiglu(writer.x()))
    limit = 2 * ROWS * WIDTH * 4
    for binding_bytes, wanted in ((limit, ["swiglu"]), (limit - 4, None)):
        target = KernelTarget(binding_bytes=binding_bytes)
        found = names(run_passes(writer.program(), target, [fuse_swiglu.run]))
        assert found == (wanted or names(writer.program()))


def attention(cache_is_state: bool = True, mask: bool = False) -> Layers:
    writer = Layers()
    x, start = writer.x(), writer.symint_input("start_pos")
    heads, width, context = (4, 2, 2), 16, 32
    tables = [writer.constant(name, np.zeros((context, width), np.float32)) for name in "cs"]
    dims = [(1, TOKENS, count, width) for count in heads]
    length = writer.symint("length")
    writer.op("sym_size.int", x, 1, length)
    q, k, v = (
        writer.made(
            "aten.view.default",
            dims[at],
            writer.linear("qkv"[at], x, rows=count * width),
            [1, length, count, width],
        )
        for at, count in enumerate(heads)
    )
    turned = [writer.tensor(each, F32) for each in dims[:2]]
    writer.op("et_vk.apply_rotary_emb_hf.default", q, k, *tables, start, turned)
    cache = (1, context, heads[1], width)
    caches = [
        writer.state(name, cache, F32) if cache_is_state else writer.input(name, cache, F32)
        for name in ("k_cache", "v_cache")
    ]
    seen = writer.constant("mask", np.zeros((TOKENS, context), np.float32)) if mask else None
    args = (*turned, v, *caches, start, 1, seen, 0.0, True, None)
    writer.output(writer.made("sdpa_with_kv_cache.default", dims[0], *args))
    return writer


def test_attention_leaves_one_op_before_it() -> None:
    assert fused(attention(), fuse_qkv.run) == ["int", "qkv_rotary_cache", "attend_kv_cache"]


def test_attention_that_is_not_plain_stays() -> None:
    for writer in (attention(cache_is_state=False), attention(mask=True)):
        assert fused(writer, fuse_qkv.run) == names(writer.program())


def test_a_call_without_its_arguments_is_left_to_the_builder() -> None:
    writer = Layers()
    x = writer.x()
    writer.op("aten.add.Tensor", x, writer.tensor((1, TOKENS, WIDTH), F32))
    program = writer.program()
    assert run_passes(program, TARGET, [fuse_residual.run, fuse_swiglu.run]).ops == program.ops


def delta_net(writer: Layers, other_x: bool = False, read_twice: bool = False) -> None:
    """Four value heads of 8, two key heads of 4."""
    x = writer.x()
    mixed, z = writer.linear("qkv", x, rows=48), writer.linear("z", x, rows=32)
    b, a = writer.linear("b", x, rows=4), writer.linear("a", z if other_x else x, rows=4)
    heads = [writer.constant(name, np.ones(4, np.float32)) for name in ("decay", "dt")]
    norm = writer.constant("norm", np.ones(8, np.float32))
    start = writer.symint_input("start")
    how = (1e-6, 2, False, writer.state("state", (1, 4, 4, 8), F32), start)
    given = (mixed, z, b, a, *heads, norm, *how)
    writer.output(writer.made("inpage.gated_delta.default", (1, TOKENS, 32), *given))
    if read_twice:
        writer.output(b)


def test_both_gates_of_a_delta_net_are_one_linear() -> None:
    writer = Layers()
    delta_net(writer)
    program = run_passes(writer.program(), TARGET, [fuse_delta_gates.run])
    assert names(program) == ["linear", "linear", "joined_linears", "gated_delta"]
    gates = program.ops[-1].args[2:4]
    assert gates[0] == gates[1] == program.ops[-2].args[-1]


def test_gates_of_another_x_or_that_others_read_stay() -> None:
    for fields in ({"other_x": True}, {"read_twice": True}):
        writer = Layers()
        delta_net(writer, **fields)
        assert fused(writer, fuse_delta_gates.run) == [*["linear"] * 4, "gated_delta"]


def queries(writer: Layers, weighted: bool = True) -> Ref:
    """Heads of another layer's caches: linear, norm, rotary and attention."""
    dims, start = (1, TOKENS, 4, 16), writer.symint_input("start")
    flat = writer.linear("q", writer.norm(writer.x()), rows=64)
    q = writer.made("aten.view.default", dims, flat, [1, TOKENS, 4, 16])
    weight = writer.constant("q_norm", np.ones(16, np.float32)) if weighted else None
    q = writer.made("et_vk.rms_norm.default", dims, q, weight, 1e-6)
    tables = [writer.constant(name, np.zeros((32, 16), np.float32)) for name in ("cos", "sin")]
    q = writer.made("inpage.rotary_of_one.default", dims, q, *tables, start)
    caches = [writer.state(name, (1, 32, 2, 16), F32) for name in ("k_cache", "v_cache")]
    return writer.made("inpage.attend_kv_cache.default", dims, q, *caches, start, None)


def test_queries_alone_are_one_op_before_attention() -> None:
    writer = Layers()
    writer.output(queries(writer))
    assert fused(writer, fuse_qkv.run, fold_norms.run) == ["q_rotary", "attend_kv_cache"]


def test_queries_whose_norm_has_no_weight_stay() -> None:
    writer = Layers()
    writer.output(queries(writer, weighted=False))
    assert fused(writer, fuse_qkv.run) == names(writer.program())


def attended(writer: Layers, view: tuple[int, ...] = (1, TOKENS, 64)) -> list[Ref]:
    """Return attention's result after a linear, and before it."""
    seen = queries(writer)
    flat = writer.made("aten.view.default", view, seen, list(view))
    return [writer.linear("o", flat, rows=WIDTH), seen]


def test_attention_and_the_linear_behind_it_are_one_op() -> None:
    for passes in ((), (fuse_qkv.run,)):
        writer = Layers()
        writer.output(attended(writer)[0])
        found = fused(writer, *passes, fuse_attend_linear.run)
        assert found[-1] == "attend_linear"
        assert not {"attend_kv_cache", "linear"} & set(found[-2:])


def test_a_residual_behind_attention_goes_along() -> None:
    writer = Layers()
    seen = writer.made("aten.view.default", (1, TOKENS, 64), queries(writer), [1, TOKENS, 64])
    residual = writer.input("residual", (1, TOKENS, WIDTH), F32, dynamic=(1,))
    operands = writer.linear("o", seen, rows=WIDTH), residual
    writer.output(writer.made("aten.add.Tensor", (1, TOKENS, WIDTH), *operands, 1))
    found = fused(writer, fuse_qkv.run, fuse_residual.run, fuse_attend_linear.run)
    assert found[-1] == "attend_linear"
    assert "linear_residual" not in found


def test_attention_that_others_read_too_stays() -> None:
    writer = Layers()
    writer.output(*attended(writer))
    assert "attend_kv_cache" in fused(writer, fuse_attend_linear.run)


def test_attention_whose_heads_go_apart_stays() -> None:
    writer = Layers()
    writer.output(attended(writer, view=(1, 4 * TOKENS, 16))[0])
    assert "attend_kv_cache" in fused(writer, fuse_attend_linear.run)


def gated(writer: Layers, dim: int = 2, number: int = 1, approximate: str = "tanh") -> Ref:
    dims = (1, TOKENS, WIDTH)
    parts = writer.input("parts", (1, TOKENS, 3, WIDTH), F32, dynamic=(1,))
    gate = writer.made("aten.gelu.default", dims, writer.x(), approximate)
    part = writer.made("aten.select_copy.int", dims, parts, dim, number)
    return writer.made("aten.mul.Tensor", dims, gate, part)


def test_gelu_times_a_part_is_one_op() -> None:
    writer = Layers()
    writer.output(gated(writer))
    assert fused(writer, fuse_gated_part.run) == ["gated_part"]


def test_another_gelu_and_a_part_counted_from_the_end_stay() -> None:
    for fields in ({"approximate": "none"}, {"number": -1}, {"dim": 1}):
        writer = Layers()
        writer.output(gated(writer, **fields))
        assert fused(writer, fuse_gated_part.run) == ["gelu", "select_copy", "mul"]


def test_a_factor_goes_into_the_norm_and_sum_before_it() -> None:
    dims = (1, TOKENS, WIDTH)
    for read_twice in (False, True):
        writer = Layers()
        x = writer.x()
        total = writer.made("aten.add.Tensor", dims, x, writer.norm(x), 1)
        factor = writer.constant("factor", np.ones(1, np.float32))
        writer.output(writer.made("aten.mul.Tensor", dims, total, factor))
        if read_twice:
            writer.output(total)
        expected = ["norm_residual", *["mul"] * read_twice]
        assert fused(writer, fuse_norm_residual.run) == expected


def summed(writer: Layers, read_before: bool = False) -> Ref:
    """Write x + norm(x), which swiglu and then a sum read."""
    dims = (1, TOKENS, WIDTH)
    x = writer.x()
    total = writer.made("aten.add.Tensor", dims, x, writer.norm(x), 1)
    if read_before:
        writer.output(writer.made("aten.sigmoid.default", dims, total))
    gated = writer.swiglu(total)
    writer.output(writer.made("aten.mul.Tensor", dims, total, total))
    return gated


def test_a_sum_goes_into_the_product_that_reads_it_first() -> None:
    passes = (fuse_swiglu.run, fuse_norm_residual.run, fold_sums.run)
    writer = Layers()
    writer.output(summed(writer))
    assert fused(writer, *passes) == ["swiglu", "mul"]
    program = run_passes(writer.program(), TARGET, passes)
    assert program.ops[0].name == "inpage.swiglu.of_sum"
    few = KernelTarget(lanes=4, storage_buffers=8)
    assert names(run_passes(writer.program(), few, passes)) == ["norm_residual", "swiglu", "mul"]


def test_a_sum_that_something_else_reads_first_stays() -> None:
    writer = Layers()
    writer.output(summed(writer, read_before=True))
    passes = (fuse_swiglu.run, fuse_norm_residual.run, fold_sums.run)
    assert fused(writer, *passes) == ["norm_residual", "sigmoid", "swiglu", "mul"]


def test_a_gate_of_a_linear_and_a_part_are_one_op() -> None:
    writer = Layers()
    dims = (1, TOKENS, WIDTH)
    parts = writer.input("parts", (1, TOKENS, 3, WIDTH), F32, dynamic=(1,))
    gate = writer.linear("gate", writer.x(), rows=WIDTH)
    gate = writer.made("aten.gelu.default", dims, gate, "tanh")
    part = writer.made("aten.select_copy.int", dims, parts, 2, 1)
    writer.output(writer.made("aten.mul.Tensor", dims, gate, part))
    assert fused(writer, fuse_gated_part.run) == ["gated_linear"]
