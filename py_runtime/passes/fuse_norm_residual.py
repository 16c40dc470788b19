"""A norm, the sum it goes into and a factor of that: inpage.norm_residual."""

from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.passes.chain import Chain
from py_runtime.program import OpCall, Program


def run(program: Program, target: KernelTarget) -> Program:
    """(residual + rms_norm(x)) * factor → norm_residual, with the factor or without."""
    chain = Chain(program)
    for place, add in chain.places("aten.add.Tensor"):
        a, b, out = (chain.arg(add, name) for name in ("a", "b", "out"))
        if chain.number(chain.arg(add, "alpha")) != 1:
            continue
        for sum_of, residual in ((b, a), (a, b)):
            norm = chain.maker_for_one(sum_of, "et_vk.rms_norm.default")
            if norm is None or chain.is_null(chain.arg(norm[1], "weight")):
                continue
            if not chain.dims(sum_of) == chain.dims(residual) == chain.dims(out):
                continue
            x, weight, eps = (chain.arg(norm[1], name) for name in ("x", "weight", "eps"))
            factor = _factor(chain, out)
            gone, factor_arg = [norm, (place, add)], chain.add(None)
            if factor is not None:
                gone, out = [*gone, factor], chain.arg(factor[1], "out")
                factor_arg = chain.arg(factor[1], "b")
                place = factor[0]
            args = (x, weight, eps, residual, factor_arg, out)
            call = OpCall("inpage.norm_residual.default", args, add.source)
            chain.replace(gone, place, [call])
            break
    return chain.program()


def _factor(chain: Chain, value_id: int) -> tuple[int, OpCall] | None:
    """The one call that reads the sum, if it multiplies it with a constant of one number."""
    reading = chain.only_call_reading(value_id)
    if reading is None or reading[1].name != "aten.mul.Tensor":
        return None
    a, b = (chain.arg(reading[1], name) for name in ("a", "b"))
    is_one = chain.constant(b) is not None and chain.dims(b) == (1,)
    return reading if a == value_id and is_one else None
