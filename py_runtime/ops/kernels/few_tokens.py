"""Products of a few tokens, such as proposed ones: each weight is read once for four of them."""

from py_runtime.base.shapes import ceil_div
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.live.launch import Bindable
from py_runtime.ops.kernels.epilogues import Epilogue
from py_runtime.ops.kernels.gemm import NormalisedTokens, PreparedTokens
from py_runtime.ops.kernels.int8_products import goes_by_blocks
from py_runtime.ops.kernels.matrices import Matrix
from py_runtime.ops.kernels.token_inputs import Norm
from py_runtime.ops.kernels.workgroups import is_roomy, usual_workgroup
from py_runtime.ops.registry import Op

GEMV_FEW = "linear/gemv_few"
MOST_TOKENS = 16
AT_ONCE = figures_of(GEMV_FEW)["TOKENS"]  # of a workgroup
PAIR_LANES = {True: 32, False: 16}  # that share a pair of rows, where workgroups are roomy or not


class FewTokens:
    """Launches for 2 to 16 tokens with one matrix, whose x is normalised beforehand."""

    def __init__(
        self,
        op: Op,
        x: Bindable,
        max_tokens: int,
        matrix: Matrix,
        epilogue: Epilogue,
        norm: Norm | None,
        known: dict[str, PreparedTokens],
    ) -> None:
        self.epilogue = epilogue
        self.eps = norm.eps if norm is not None else 0.0
        self.shared = {**matrix.fields, "eps": self.eps}
        if "" not in known:
            weight = norm.weight if norm is not None else None
            known[""] = NormalisedTokens(op, x, max_tokens, matrix, weight)
        self.prepare = known[""]
        self.workgroup = usual_workgroup(op.builder.limits)
        lanes = PAIR_LANES[is_roomy(op.builder.limits)]
        self.group_pairs = self.workgroup // lanes
        self.gemv = op.launch(
            GEMV_FEW,
            plugs={**epilogue.plugs, "blocks": matrix.kind},
            bind={**epilogue.bind, **matrix.bind, "x": self.prepare.out},
            constants={"WHOLE_K": 1.0, "WORKGROUP": self.workgroup, "PAIR_LANES": lanes},
        )

    def __call__(self, tokens: int) -> None:
        self.prepare(tokens, self.eps)
        pairs = self.epilogue.pairs
        groups = ceil_div(pairs, self.group_pairs) * ceil_div(tokens, AT_ONCE)
        self.gemv(groups, tokens=tokens, pairs=pairs, **self.epilogue.fields, **self.shared)

    def skip(self) -> None:
        self.prepare.skip()
        self.gemv.skip()


def takes_few(matrix: Matrix, max_tokens: int, target: KernelTarget) -> bool:
    """Return whether the tokens that an op may have are few, and its weights in blocks."""
    return target.wide and max_tokens <= MOST_TOKENS and goes_by_blocks(matrix, target)
