"""A pass that folds a norm into the only fused op that reads it."""

from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.passes.chain import Chain, sources_of
from py_runtime.program import Program, op_names

TAKE_A_NORM = (
    "inpage.swiglu.default",
    "inpage.geglu.default",
    op_names.QKV_ROTARY_CACHE,
    "inpage.q_rotary.default",
)


def run(program: Program, target: KernelTarget) -> Program:
    """Fold rms_norm into the swiglu, geglu, qkv_rotary_cache or q_rotary behind it."""
    chain = Chain(program)
    for norm in chain.calls_of(op_names.RMS_NORM):
        reading = chain.only_call_reading(chain.arg(norm.call, "out"))
        if reading is None or reading.call.name not in TAKE_A_NORM:
            continue
        if chain.is_null(chain.arg(norm.call, "weight")):
            continue
        at, call = reading
        x = chain.arg(norm.call, "out")
        if chain.arg(call, "x") != x or not chain.is_null(chain.arg(call, "norm")):
            continue
        changed = {name: chain.arg(norm.call, name) for name in ("x", "eps")}
        changed["norm"] = chain.arg(norm.call, "weight")
        fused = chain.call(call.name, sources_of([norm, reading]), **chain.given(call) | changed)
        chain.replace([norm, reading], at, [fused])
    return chain.program()
