"""A pass that fuses a norm, the sum it goes into and a factor of that: inpage.norm_residual."""

from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.passes.chain import CallAt, Chain, sources_of
from py_runtime.program import Program, op_names


def run(program: Program, target: KernelTarget) -> Program:
    """Replace (residual + rms_norm(x)) * factor by norm_residual; the factor is optional."""
    chain = Chain(program)
    for at, add in chain.calls_of(op_names.ADD):
        a, b, out = (chain.arg(add, name) for name in ("a", "b", "out"))
        if chain.number(chain.arg(add, "alpha")) != 1:
            continue
        for sum_of, residual in ((b, a), (a, b)):
            norm = chain.maker_for_one(sum_of, op_names.RMS_NORM)
            if norm is None or chain.is_null(chain.arg(norm.call, "weight")):
                continue
            if not chain.dims(sum_of) == chain.dims(residual) == chain.dims(out):
                continue
            given = chain.given(norm.call) | {"residual": residual, "out": out}
            gone = [norm, CallAt(at, add)]
            factor = _factor(chain, out)
            if factor is not None:
                at, gone = factor.at, [*gone, factor]
                given |= {"factor": chain.arg(factor.call, "b")}
                given |= {"out": chain.arg(factor.call, "out")}
            call = chain.call("inpage.norm_residual.default", sources_of(gone), **given)
            chain.replace(gone, at, [call])
            break
    return chain.program()


def _factor(chain: Chain, value_id: int) -> CallAt | None:
    """Return the only call that reads the sum, if it multiplies it by a constant scalar."""
    reading = chain.only_call_reading(value_id)
    if reading is None or reading.call.name != op_names.MUL:
        return None
    a, b = (chain.arg(reading.call, name) for name in ("a", "b"))
    is_one = chain.constant(b) is not None and chain.dims(b) == (1,)
    return reading if a == value_id and is_one else None
