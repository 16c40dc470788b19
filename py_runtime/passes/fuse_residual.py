"""A linear and the sum it goes into: inpage.linear_residual."""

from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.passes.chain import Chain
from py_runtime.passes.linear_calls import LINEARS, linear_call, weight_args
from py_runtime.program import OpCall, Program


def run(program: Program, target: KernelTarget) -> Program:
    chain = Chain(program)
    for place, add in chain.places("aten.add.Tensor"):
        a, b, out = (chain.arg(add, name) for name in ("a", "b", "out"))
        if chain.number(chain.arg(add, "alpha")) != 1:
            continue
        for sum_of, residual in ((b, a), (a, b)):
            linear = linear_call(chain, chain.maker_for_one(sum_of, *LINEARS))
            if linear is None:
                continue
            if not chain.dims(sum_of) == chain.dims(residual) == chain.dims(out):
                continue
            args = [linear.x, *weight_args(chain, [linear]), residual, out]
            call = OpCall("inpage.linear_residual.default", tuple(args), add.source)
            chain.replace([linear.made, (place, add)], place, [call])
            break
    return chain.program()
