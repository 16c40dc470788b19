"""Matrix-vector products: kernels for one token of x."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from py_runtime.base.shapes import ceil_div
from py_runtime.gpu.kernel_sources import kernel_source
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.gpu.second_copies import SECOND
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.live.launch import Bindable
from py_runtime.live.values import LiveInt
from py_runtime.ops.kernels.epilogues import Epilogue
from py_runtime.ops.kernels.int8_products import (
    GEMVS,
    MAX_BLOCKS,
    choose_gemv_tile,
    goes_by_blocks,
)
from py_runtime.ops.kernels.matrices import Matrices
from py_runtime.ops.kernels.tilings import SHARING_LANES
from py_runtime.ops.kernels.token_inputs import Norm, TokenInput
from py_runtime.ops.registry import Op
from py_runtime.program.weight_kinds import BLOCK, Q4GSW

GEMV, GEMV_WIDE = "linear/gemv", "linear/gemv_wide"


class Gemv:
    """A launch for one token, with one matrix or two that fit a mixed kernel.

    The norm of x costs no kernel of its own, nor does the sum that x may be.
    """

    def __init__(
        self,
        op: Op,
        token: TokenInput,
        matrices: Matrices,
        epilogue: Epilogue,
        norm: Norm | None = None,
    ) -> None:
        self.epilogue = epilogue
        self.shared = {**matrices[0].fields, "eps": norm.eps if norm is not None else 0.0}
        # Without a norm, a buffer that is read anyway, and is large enough, is bound in its place.
        weight = norm.weight if norm is not None else next(iter(token.bind.values()))
        variant = choose_gemv(matrices, op.builder.target, op.builder.limits)
        self.group_pairs = variant.pairs
        self.gemv = op.launch(
            variant.kernel,
            plugs={**epilogue.plugs, **variant.plugs, **token.plugs},
            bind={**epilogue.bind, **bind_weights(matrices), **token.bind, "norm": weight},
            constants={**variant.constants, **token.constants, "NORMED": float(norm is not None)},
        )

    def __call__(self) -> None:
        pairs = self.epilogue.pairs
        groups = ceil_div(pairs, self.group_pairs)
        self.gemv(groups, tokens=1, pairs=pairs, **self.epilogue.fields, **self.shared)

    def skip(self) -> None:
        self.gemv.skip()


def bind_weights(matrices: Matrices) -> dict[str, Bindable]:
    """Return the weights by their names in a kernel of one matrix, or of two."""
    endings = ("", SECOND)[: len(matrices)]
    return {
        name + ending: resource
        for matrix, ending in zip(matrices, endings, strict=True)
        for name, resource in matrix.bind.items()
    }


@dataclass(frozen=True)
class GemvVariant:
    """A kernel for one token of x, and how it is specialised."""

    kernel: str
    plugs: Mapping[str, str]
    pairs: int  # of rows that a workgroup computes
    constants: Mapping[str, float]


def choose_gemv(matrices: Matrices, target: KernelTarget, limits: Mapping[str, int]) -> GemvVariant:
    """Choose the kernel for one token by the matrix's kind and shape, and by the device."""
    matrix = matrices[0]
    if goes_by_blocks(matrix, target):
        return specialise_block_gemv(matrices, target, limits)
    kernel = GEMV_WIDE if target.wide else GEMV
    known = figures_of(kernel)
    weight = matrix.octet_plugs
    constants = {
        "SCALE_PER_OCTET": float(matrix.scale_per_octet),
        "WHOLE_K": float(matrix.columns % (8 * known["OCTETS"]) == 0),
    }
    if target.wide:
        return GemvVariant(kernel, {**weight, "lanes": target.lanes_by}, known["PAIRS"], constants)
    block = "shared" if target.lanes >= SHARING_LANES else "alone"
    pairs = known["WORKGROUP"] * known["PAIRS"]
    return GemvVariant(kernel, {**weight, "block": block}, pairs, constants)


def count_gemv_buffers(plugs: Mapping[str, str]) -> int:
    """Count the storage buffers of a kernel for one token with these plugs and scaled weights."""
    return kernel_source(GEMV, {"weight": Q4GSW, "block": "alone", **plugs}).storage_buffers


def specialise_block_gemv(
    matrices: Matrices, target: KernelTarget, limits: Mapping[str, int]
) -> GemvVariant:
    """Return the kernel that multiplies weights in blocks by the token."""
    arithmetic = target.one_token
    both = replace(matrices[0], part_rows=tuple(matrix.rows for matrix in matrices))
    tile = choose_gemv_tile(both, limits)
    constants = {
        "WHOLE_K": 1.0,
        "WORKGROUP": tile.workgroup,
        "GROUP_PAIRS": tile.group_pairs,
        "UNROLL": tile.unroll,
        "TILE": tile.blocks_at_once(matrices[0].columns // BLOCK, MAX_BLOCKS[arithmetic]),
    }
    plugs = {"blocks": matrices[0].kind, "lanes": target.lanes_by}
    alone, mixed = GEMVS[arithmetic]
    if len(matrices) == 1:
        return GemvVariant(alone, plugs, tile.group_pairs, constants)
    plugs |= {f"blocks{SECOND}": matrices[1].kind}
    constants |= {"FIRST_PAIRS": matrices[0].rows // 2}
    return GemvVariant(mixed, plugs, tile.group_pairs, constants)


def fit_mixed_gemv(op: Op, matrices: Matrices, token: TokenInput, epilogue: Epilogue) -> bool:
    """Return whether two matrices of different kinds can share a kernel for one token.

    It binds the weights of both, and each workgroup computes rows of one. Measured on an H200: with
    two kernels, one token of a 1B model of type Q4_K_M takes 7 to 10 % longer.
    """
    target = op.builder.target
    if len(matrices) != 2 or not all(goes_by_blocks(matrix, target) for matrix in matrices):
        return False
    first, second = matrices
    resources = (*epilogue.bind.values(), *token.bind.values(), *bind_weights(matrices).values())
    buffers = 1 + sum(not isinstance(resource, LiveInt) for resource in resources)  # and the norm
    return (
        first.kind != second.kind
        and first.fields == second.fields
        and first.rows % (2 * choose_gemv(matrices, target, op.builder.limits).pairs) == 0
        and buffers <= target.storage_buffers
    )
