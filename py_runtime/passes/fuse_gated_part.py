"""gelu of one tensor times one part of another: inpage.gated_part, or inpage.gated_linear with the
linear that the first comes from."""

from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.passes.chain import Chain
from py_runtime.passes.linear_calls import LINEARS, can_join, linear_call, weight_args
from py_runtime.program import OpCall, Program, StringValue, op_names


def run(program: Program, target: KernelTarget) -> Program:
    """gelu(gate) * select(parts) → gated_part, or gated_linear where a linear gives the gate."""
    chain = Chain(program)
    for place, mul in chain.places("aten.mul.Tensor"):
        a, b, out = (chain.arg(mul, name) for name in ("a", "b", "out"))
        for gated, part in ((a, b), (b, a)):
            gelu = chain.maker_for_one(gated, op_names.GELU)
            select = chain.maker_for_one(part, op_names.SELECT)
            if gelu is None or select is None or not _is_by_tanh(chain, gelu[1]):
                continue
            parts, number = chain.arg(select[1], "x"), chain.arg(select[1], "index")
            gate = chain.arg(gelu[1], "x")
            dim, at = chain.number(chain.arg(select[1], "dim")), chain.number(number)
            dims = chain.dims(parts)
            is_its_part = (*dims[:-2], *dims[-1:]) == chain.dims(gate) == chain.dims(out)
            if dim != len(dims) - 2 or at is None or at < 0 or not is_its_part:
                continue
            gone = [gelu, select, (place, mul)]
            linear = linear_call(chain, chain.maker_for_one(gate, *LINEARS))
            if linear is None or linear.bias is not None or not can_join(chain, [linear], target):
                call = OpCall("inpage.gated_part.default", (gate, parts, number, out), mul.source)
            else:
                gone.append(linear.made)
                args = (linear.x, *weight_args(chain, [linear]), parts, number, out)
                call = OpCall("inpage.gated_linear.default", args, mul.source)
            chain.replace(gone, place, [call])
            break
    return chain.program()


def _is_by_tanh(chain: Chain, gelu: OpCall) -> bool:
    approximate = chain.values[chain.arg(gelu, "approximate")]
    return isinstance(approximate, StringValue) and approximate.value == "tanh"
