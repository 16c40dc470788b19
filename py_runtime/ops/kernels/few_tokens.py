"""Products of a few tokens, such as proposed ones: each weight is read once for all of them."""

from py_runtime.base.shapes import ceil_div
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.live.launch import Bindable
from py_runtime.ops.kernels.epilogues import Epilogue
from py_runtime.ops.kernels.gemm import NormalisedTokens, PreparedTokens
from py_runtime.ops.kernels.int8_products import goes_by_blocks
from py_runtime.ops.kernels.matrices import Matrix
from py_runtime.ops.kernels.token_inputs import Norm
from py_runtime.ops.kernels.workgroups import usual_workgroup
from py_runtime.ops.registry import Op

GEMV_FEW = "linear/gemv_few"
MOST_TOKENS = 16
AT_ONCE = (4, 8)  # tokens of a workgroup
PAIR_LANES = (32, 16)  # invocations that share a pair of rows, where memory allows as many
# Bytes of workgroup memory for a block of a token, and beside all of them.
BLOCK_BYTES, OTHER_BYTES = 9 * 16 + 4 * 4, 2 << 10


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
        memory = op.builder.limits["max_compute_workgroup_storage_size"]
        self.lanes = {
            tokens: lanes
            for tokens in AT_ONCE
            if (lanes := lanes_that_fit(tokens, memory)) is not None
        }
        self.gemvs = {
            tokens: op.launch(
                GEMV_FEW,
                plugs={**epilogue.plugs, "blocks": matrix.kind},
                bind={**epilogue.bind, **matrix.bind, "x": self.prepare.out},
                constants={
                    "WHOLE_K": 1.0,
                    "WORKGROUP": self.workgroup,
                    "TOKENS": tokens,
                    "PAIR_LANES": lanes,
                },
            )
            for tokens, lanes in self.lanes.items()
        }

    def __call__(self, tokens: int) -> None:
        self.prepare(tokens, self.eps)
        chosen = next((most for most in self.gemvs if tokens <= most), max(self.gemvs))
        for most, gemv in self.gemvs.items():
            if most != chosen:
                gemv.skip()
        pairs = self.epilogue.pairs
        group_pairs = self.workgroup // self.lanes[chosen]
        groups = ceil_div(pairs, group_pairs) * ceil_div(tokens, chosen)
        fields = {**self.epilogue.fields, **self.shared}
        self.gemvs[chosen](groups, tokens=tokens, pairs=pairs, **fields)

    def skip(self) -> None:
        self.prepare.skip()
        for gemv in self.gemvs.values():
            gemv.skip()


def lanes_that_fit(tokens: int, memory: int) -> int | None:
    """Return how many invocations share a pair of rows; None: not so many tokens fit."""
    for lanes in PAIR_LANES:
        if tokens * lanes * BLOCK_BYTES + OTHER_BYTES <= memory:
            return lanes
    return None


def takes_few(matrix: Matrix, max_tokens: int, target: KernelTarget) -> bool:
    """Return whether the tokens that an op may have are few, and its weights in blocks."""
    return target.wide and max_tokens <= MOST_TOKENS and goes_by_blocks(matrix, target)
