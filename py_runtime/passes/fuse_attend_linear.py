"""A pass that fuses attention with the linear that reads all of it: inpage.attend_linear."""

from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.passes.chain import VIEWS, CallAt, Chain, sources_of
from py_runtime.passes.linear_calls import LINEARS, linear_call, weight_args
from py_runtime.program import Program, op_names

LINEAR_RESIDUAL = "inpage.linear_residual.default"


def run(program: Program, target: KernelTarget) -> Program:
    """Fuse attend_kv_cache or attend_window with its linear, with a residual or without."""
    chain = Chain(program)
    for attend in chain.calls_of(*op_names.ATTEND):
        gone, attended = [attend], chain.arg(attend.call, "out")
        q = chain.dims(attended)
        if (view := chain.only_call_reading(attended)) is not None and view.call.name in VIEWS:
            gone, attended = [attend, view], chain.arg(view.call, "out")
        found = _linear(chain, attended)
        flat = (*q[:-2], q[-2] * q[-1]) if len(q) > 2 else ()
        if found is None or chain.dims(attended) != flat or any(dim != 1 for dim in q[:-3]):
            continue
        linear, args = found
        given = chain.given(attend.call) | args
        gone.append(linear)
        call = chain.call("inpage.attend_linear.default", sources_of(gone), **given)
        chain.replace(gone, linear.at, [call])
    return chain.program()


def _linear(chain: Chain, x: int) -> tuple[CallAt, dict[str, int | None]] | None:
    """Return the only call that reads x, if it is a linear, and its arguments without x."""
    reading = chain.only_call_reading(x)
    if reading is None or reading.call.name not in (LINEAR_RESIDUAL, *LINEARS):
        return None
    if reading.call.name == LINEAR_RESIDUAL:
        given = chain.given(reading.call)
        return reading, {name: arg for name, arg in given.items() if name != "x"}
    linear = linear_call(chain, reading)
    if linear is None:
        return None
    return reading, {**weight_args(chain, [linear]), "out": linear.out}
