"""A pass that folds a sum into the first fused op that reads it: inpage.….of_sum."""

from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.ops.kernels.gemv import count_gemv_buffers
from py_runtime.passes.chain import Chain, sources_of
from py_runtime.program import OpCall, Program, op_names

TAKE_A_SUM = (
    "inpage.swiglu.default",
    "inpage.geglu.default",
    "inpage.gated_linear.default",
    op_names.QKV_ROTARY_CACHE,
    "inpage.q_rotary.default",
)
# Storage buffers of the kernels that do both.
BUFFERS = count_gemv_buffers({"token": "summed", "epilogue": "swiglu", "gate": "silu"})


def run(program: Program, target: KernelTarget) -> Program:
    """Fold norm_residual into the op of TAKE_A_SUM behind it, which returns the sum, too."""
    chain = Chain(program)
    if target.storage_buffers < BUFFERS:
        return program
    for made in chain.calls_of("inpage.norm_residual.default"):
        total = chain.arg(made.call, "out")
        reading = chain.calls_reading(total)
        if not reading or chain.dims(total)[-1] % 4:
            continue
        at, call = reading[0]
        if call.name not in TAKE_A_SUM or not _has_room(chain, call, total):
            continue
        others, summed = chain.given(call), chain.given(made.call)
        del others["x"]
        fused = chain.call(
            call.name.replace(".default", ".of_sum"),
            sources_of([made, reading[0]]),
            of=summed["x"],
            sum_norm=summed["weight"],
            sum_eps=summed["eps"],
            residual=summed["residual"],
            factor=summed["factor"],
            **others | {"out": chain.add([others["out"], total])},
        )
        chain.replace([made, reading[0]], at, [fused])
    return chain.program()


def _has_room(chain: Chain, call: OpCall, total: int) -> bool:
    """Return whether the kernel stays within the bindings that most devices allow."""
    if chain.arg(call, "x") != total or call.args.count(total) > 1:
        return False
    if "rotary" not in call.name:
        return True
    return not chain.is_null(chain.arg(call, "q_norm"))
