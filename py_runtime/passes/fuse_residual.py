"""A pass that fuses a linear or experts with the sum they go into.

It makes inpage.linear_residual and inpage.experts_residual.
"""

from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.passes.chain import CallAt, Chain, sources_of
from py_runtime.passes.linear_calls import LINEARS, linear_call, weight_args
from py_runtime.program import Program, op_names


def run(program: Program, target: KernelTarget) -> Program:
    """Fuse residual + linear(x) and residual + experts(x)."""
    chain = Chain(program)
    for at, add in chain.calls_of(op_names.ADD):
        a, b, out = (chain.arg(add, name) for name in ("a", "b", "out"))
        if chain.number(chain.arg(add, "alpha")) != 1:
            continue
        for sum_of, residual in ((b, a), (a, b)):
            if not chain.dims(sum_of) == chain.dims(residual) == chain.dims(out):
                continue
            linear = linear_call(chain, chain.maker_for_one(sum_of, *LINEARS))
            experts = chain.maker_for_one(sum_of, op_names.EXPERTS)
            if linear is not None:
                made, name = linear.made, "inpage.linear_residual.default"
                given = {"x": linear.x, **weight_args(chain, [linear])}
            elif experts is not None:
                made, name = experts, "inpage.experts_residual.default"
                given = {**chain.given(experts.call)}
            else:
                continue
            gone = [made, CallAt(at, add)]
            given |= {"residual": residual, "out": out}
            chain.replace(gone, at, [chain.call(name, sources_of(gone), **given)])
            break
    return chain.program()
