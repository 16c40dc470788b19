"""A pass that joins the two gates of inpage.gated_delta into inpage.joined_linears."""

from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.passes.chain import CallAt, Chain, sources_of
from py_runtime.passes.linear_calls import LINEARS, can_join, linear_call, weight_args
from py_runtime.program import Program


def run(program: Program, target: KernelTarget) -> Program:
    """Replace two linears of one x by joined_linears; gated_delta reads its halves."""
    chain = Chain(program)
    for at, delta in chain.calls_of("inpage.gated_delta.default"):
        gates = [chain.arg(delta, name) for name in ("b", "a")]
        found = [linear_call(chain, chain.maker_for_one(gate, *LINEARS)) for gate in gates]
        linears = [each for each in found if each is not None]
        if len(linears) < 2 or not can_join(chain, linears, target):
            continue
        *lead, rows = chain.dims(gates[0])
        if chain.dims(gates[1]) != (*lead, rows):
            continue
        both = chain.add_like(gates[0], (*lead, 2 * rows))
        joined = chain.call(
            "inpage.joined_linears.default",
            sources_of(linear.made for linear in linears),
            x=linears[0].x,
            **weight_args(chain, linears),
            out=both,
        )
        halves = {"b": both, "a": both}
        changed = chain.call(delta.name, delta.source, **chain.given(delta) | halves)
        gone = [*(linear.made for linear in linears), CallAt(at, delta)]
        chain.replace(gone, at, [joined, changed])
    return chain.program()
