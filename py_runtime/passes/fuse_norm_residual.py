"""A norm and the sum it goes into: inpage.norm_residual."""

from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.passes.chain import Chain
from py_runtime.program import OpCall, Program


def run(program: Program, target: KernelTarget) -> Program:
    chain = Chain(program)
    for place, add in chain.places("aten.add.Tensor"):
        a, b, out = (chain.arg(add, name) for name in ("a", "b", "out"))
        if chain.number(chain.arg(add, "alpha")) != 1:
            continue
        for sum_of, residual in ((b, a), (a, b)):
            norm = chain.maker_for_one(sum_of, "et_vk.rms_norm.default")
            if norm is None:
                continue
            if not chain.dims(sum_of) == chain.dims(residual) == chain.dims(out):
                continue
            x, weight, eps = (chain.arg(norm[1], name) for name in ("x", "weight", "eps"))
            args = (x, weight, eps, residual, out)
            call = OpCall("inpage.norm_residual.default", args, add.source)
            chain.replace([norm, (place, add)], place, [call])
            break
    return chain.program()
