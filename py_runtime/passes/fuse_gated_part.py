"""A pass that fuses the gelu of one tensor times a part of another: inpage.gated_part.

Where a linear makes the first tensor, it becomes part of the op: inpage.gated_linear.
"""

from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.passes.chain import CallAt, Chain, sources_of
from py_runtime.passes.linear_calls import LINEARS, can_join, linear_call, weight_args
from py_runtime.program import Program, op_names


def run(program: Program, target: KernelTarget) -> Program:
    """Replace gelu(gate) * select(parts) by gated_part, or by gated_linear behind a linear."""
    chain = Chain(program)
    for at, mul in chain.calls_of(op_names.MUL):
        a, b, out = (chain.arg(mul, name) for name in ("a", "b", "out"))
        for gated, part in ((a, b), (b, a)):
            gelu = chain.maker_for_one(gated, op_names.GELU)
            select = chain.maker_for_one(part, op_names.SELECT)
            if gelu is None or select is None or not chain.is_by_tanh(gelu.call):
                continue
            parts, number = chain.arg(select.call, "x"), chain.arg(select.call, "index")
            gate = chain.arg(gelu.call, "x")
            dim, index = chain.number(chain.arg(select.call, "dim")), chain.number(number)
            dims = chain.dims(parts)
            is_its_part = (*dims[:-2], *dims[-1:]) == chain.dims(gate) == chain.dims(out)
            if dim != len(dims) - 2 or index is None or index < 0 or not is_its_part:
                continue
            gone = [gelu, select, CallAt(at, mul)]
            given: dict[str, int | None] = {"parts": parts, "number": number, "out": out}
            linear = linear_call(chain, chain.maker_for_one(gate, *LINEARS))
            if linear is None or linear.bias is not None or not can_join(chain, [linear], target):
                name, given = "inpage.gated_part.default", given | {"gate": gate}
            else:
                gone.append(linear.made)
                given |= {"x": linear.x} | weight_args(chain, [linear])
                name = "inpage.gated_linear.default"
            call = chain.call(name, sources_of(gone), **given)
            chain.replace(gone, at, [call])
            break
    return chain.program()
