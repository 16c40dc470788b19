"""Attention and the linear that takes all that it gives: inpage.attend_linear."""

from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.passes.chain import VIEWS, Chain
from py_runtime.passes.linear_calls import LINEARS, linear_call, weight_args
from py_runtime.program import OpCall, Program, op_names

LINEAR_RESIDUAL = "inpage.linear_residual.default"
SEEN = ("window", "softcap", "sinks")


def run(program: Program, target: KernelTarget) -> Program:
    """attend_kv_cache or attend_window, then a linear, with a sum or not → attend_linear."""
    chain = Chain(program)
    for attend in chain.places(*op_names.ATTEND):
        gone, attended = [attend], chain.arg(attend[1], "out")
        q = chain.dims(attended)
        if (view := chain.only_call_reading(attended)) is not None and view[1].name in VIEWS:
            gone, attended = [attend, view], chain.arg(view[1], "out")
        found = _linear(chain, attended)
        flat = (*q[:-2], q[-2] * q[-1]) if len(q) > 2 else ()
        if found is None or chain.dims(attended) != flat or any(dim != 1 for dim in q[:-3]):
            continue
        linear, args = found
        known = [chain.arg(attend[1], name) for name in ("q", "k_cache", "v_cache")]
        known += [chain.arg(attend[1], name) for name in ("start_pos", "scale")]
        seen = [chain.add(None)] * len(SEEN)
        if attend[1].name == op_names.ATTEND_WINDOW:
            seen = [chain.arg(attend[1], name) for name in SEEN]
        call = OpCall("inpage.attend_linear.default", (*known, *seen, *args), linear[1].source)
        chain.replace([*gone, linear], linear[0], [call])
    return chain.program()


def _linear(chain: Chain, x: int) -> tuple[tuple[int, OpCall], list[int]] | None:
    """The one call that reads x, if it is a linear, and its arguments but for x."""
    reading = chain.only_call_reading(x)
    if reading is None or reading[1].name not in (LINEAR_RESIDUAL, *LINEARS):
        return None
    if reading[1].name == LINEAR_RESIDUAL:
        return reading, list(reading[1].args[1:])
    linear = linear_call(chain, reading)
    if linear is None:
        return None
    return reading, [*weight_args(chain, [linear]), chain.add(None), linear.out]
