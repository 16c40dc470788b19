"""A pass that fuses silu(gate) * up of two linears of one x: inpage.swiglu, or geglu with gelu."""

from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.passes.chain import CallAt, Chain, sources_of
from py_runtime.passes.linear_calls import LINEARS, can_join, linear_call, weight_args
from py_runtime.program import Program, op_names


def run(program: Program, target: KernelTarget) -> Program:
    """Replace silu(linear(x)) * linear(x) by swiglu, with the tanh gelu by geglu."""
    chain = Chain(program)
    for at, mul in chain.calls_of(op_names.MUL):
        a, b, out = (chain.arg(mul, name) for name in ("a", "b", "out"))
        for gated, plain in ((a, b), (b, a)):
            activation = chain.maker_for_one(gated, op_names.SILU, op_names.GELU)
            if activation is None:
                continue
            is_silu = activation.call.name == op_names.SILU
            if not is_silu and not chain.is_by_tanh(activation.call):
                continue
            sums = (chain.arg(activation.call, "x"), plain)
            found = [linear_call(chain, chain.maker_for_one(each, *LINEARS)) for each in sums]
            linears = [each for each in found if each is not None]
            if len(linears) < 2 or not can_join(chain, linears, target):
                continue
            if chain.dims(linears[0].out) != chain.dims(linears[1].out):
                continue
            name = "inpage.swiglu.default" if is_silu else "inpage.geglu.default"
            weights = weight_args(chain, linears)
            gone = [*(linear.made for linear in linears), activation, CallAt(at, mul)]
            call = chain.call(name, sources_of(gone), x=linears[0].x, **weights, out=out)
            chain.replace(gone, at, [call])
            break
    return chain.program()
