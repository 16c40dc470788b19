"""The kernels of a linear layer, x weightᵀ, and of what is fused with it (see docs/linear.md)."""

from py_runtime.base.shapes import numel
from py_runtime.live.launch import Bindable
from py_runtime.live.values import LiveTensor
from py_runtime.ops.kernels.epilogues import Epilogue
from py_runtime.ops.kernels.few_tokens import FewTokens, takes_few
from py_runtime.ops.kernels.gemm import Gemm, PreparedTokens
from py_runtime.ops.kernels.gemv import Gemv, fit_mixed_gemv
from py_runtime.ops.kernels.matrices import Matrices
from py_runtime.ops.kernels.norms import RmsNormKernel
from py_runtime.ops.kernels.token_inputs import Norm, Summed, TokenInput
from py_runtime.ops.registry import Op


class LinearKernels:
    """The GEMV launches of an op, and its GEMM launches where it may have several tokens.

    A GEMV takes one matrix, or two of different kinds; a GEMM takes one. x may be computed and
    normalised on the way. On the CPU there are GEMMs alone, which take one token, too.

    `many` is the epilogue for several tokens, where it is not that for one; `source` is read in
    place of x, of which then only the number of tokens counts.
    """

    def __init__(
        self,
        op: Op,
        x: LiveTensor,
        matrices: Matrices,
        epilogue: Epilogue,
        norm: Norm | None = None,
        many: Epilogue | None = None,
        source: Bindable | None = None,
        summed: Summed | None = None,
    ) -> None:
        self.op, self.summed = op, summed
        self.tensors = dict.fromkeys(tensor for matrix in matrices for tensor in matrix.tensors)
        max_tokens = numel(x.max_dims[:-1])
        self.sum_up: RmsNormKernel | None = None
        is_cpu = op.builder.target.cpu
        if summed is not None and (max_tokens > 1 or is_cpu):
            added = (x, summed.residual, summed.factor)
            self.sum_up = RmsNormKernel(op, summed.of, summed.norm.weight, *added)
        self.columns = x.max_dims[-1]
        plain = TokenInput.plain(source or x)
        token = plain if summed is None else TokenInput.summed(summed, x)
        self.gemvs: list[Gemv] = []
        left = () if is_cpu else matrices
        while left:
            count = 2 if fit_mixed_gemv(op, left[:2], token, epilogue) else 1
            own = epilogue if len(matrices) == 1 else epilogue.narrow_to(left[:count])
            self.gemvs.append(Gemv(op, token, left[:count], own, norm))
            left, token = left[count:], plain  # the first kernel writes x for the others
        self.bias = (many or epilogue).each_token
        self.gemms: list[Gemm | FewTokens] = []
        known: dict[str, PreparedTokens] = {}
        for matrix in matrices if max_tokens > 1 or is_cpu else ():
            own = many or epilogue
            own = own if len(matrices) == 1 else own.narrow_to((matrix,))
            kind = FewTokens if takes_few(matrix, max_tokens, op.builder.target) else Gemm
            self.gemms.append(kind(op, source or x, max_tokens, matrix, own, norm, known))

    def __call__(self, tokens: int) -> None:
        for tensor in self.tensors:
            if tensor.dims != tensor.max_dims:
                self.op.require_live(False, f"{tensor.label} cannot be resized")
        if self.bias is not None:
            self.op.require_live(
                numel(self.bias.dims[:-1]) == tokens,
                f"a bias of {list(self.bias.dims)} does not fit {tokens} tokens",
            )
        by_gemvs = bool(self.gemvs) and (tokens == 1 or not self.gemms)
        if self.sum_up is not None and self.summed is not None:
            if by_gemvs:
                self.sum_up.skip()
            else:
                self.sum_up(tokens, self.columns, self.summed.norm.eps)
        if by_gemvs:
            for gemm in self.gemms:
                gemm.skip()
            for gemv in self.gemvs:
                gemv()
        else:
            for gemv in self.gemvs:
                gemv.skip()
            for gemm in self.gemms:
                gemm(tokens)

    def skip(self) -> None:
        """Skip all kernels; only ops whose x is never a sum do so."""
        for gemv in self.gemvs:
            gemv.skip()
        for gemm in self.gemms:
            gemm.skip()
