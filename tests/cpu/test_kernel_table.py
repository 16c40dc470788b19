"""Kernels in C and the shaders whose interface they have: none is missing, none is left over."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from py_runtime.base.errors import GpuUnavailableError, GraphError
from py_runtime.cpu import kernel_table as tables
from py_runtime.cpu.kernel_table import constant_bits, kernel_number, kernel_table
from py_runtime.gpu.kernel_sources import kernel_source
from py_runtime.gpu.shader_figures import members_of
from py_runtime.gpu.shader_sources import STAR, all_shaders
from tools.files import ROOT

FILES = all_shaders().files
# What ops launch on GPUs alone: on the CPU they take the kernel after the arrow.
OF_GPUS = {
    "attention/attend": "attention/attend_wide",
    "attention/attend_prompt_wide": "attention/attend_wide",
    "attention/attend_row_wide": "attention/attend_wide",
    "attention/qkv_heads_wide": "attention/qkv_heads",
    "attention/reduce": "attention/reduce_wide",
    "linear/gemm": "linear/gemm_int8",
    "linear/gemm_f16": "linear/gemm_int8",
    "linear/gemm_f32": "linear/gemm_int8",
    "linear/gemm_matrices": "linear/gemm_int8",
    "linear/gemv": "linear/gemm_int8",
    "linear/gemv_f16": "linear/gemm_int8",
    "linear/gemv_f32": "linear/gemm_int8",
    "linear/gemv_few": "linear/gemm_int8",
    "linear/gemv_few_int8": "linear/gemm_int8",
    "linear/gemv_int8": "linear/gemm_int8",
    "linear/gemv_mixed_f16": "linear/gemm_int8",
    "linear/gemv_mixed_f32": "linear/gemm_int8",
    "linear/gemv_mixed_int8": "linear/gemm_int8",
    "linear/gemv_wide": "linear/gemm_wide",
    "linear/halve_tokens": "linear/split_planes",
    "reduce/rms_norm": "reduce/rms_norm_wide",
    "states/gated_delta_wide": "states/gated_delta",
    "states/gated_norm": "states/gated_norm_wide",
    "states/scan_starts": "states/selective_scan",
    "states/selective_scan_wide": "states/selective_scan",
}
# A fragment whose own slot says all that matters to C.
TOLD_BY_ITS_SLOT = {"shared/weights/octets_blocks"}


def test_every_kernel_is_there_or_has_another_in_its_place() -> None:
    kernels = {name for name, file in FILES.items() if file.is_kernel}
    assert kernels - kernel_table().kernels.keys() == OF_GPUS.keys()
    assert set(OF_GPUS.values()) <= kernel_table().kernels.keys()


def test_a_slot_is_filled_in_c_by_all_its_fragments_or_by_none() -> None:
    """A fragment that is missing would be a null pointer that a kernel reads."""
    filled = kernel_table().fragments.keys()
    for pattern, fragments in slots():
        found = fragments & filled
        assert not found or fragments - found <= TOLD_BY_ITS_SLOT, pattern


def slots() -> Iterator[tuple[str, set[str]]]:
    for start in {start for file in FILES.values() for start in file.slots.values()}:
        yield start + STAR, {start + name for name in all_shaders().alternatives(start)}


def test_a_kernel_that_is_missing_is_named() -> None:
    with pytest.raises(GraphError, match="the kernel 'linear/gemv' does not exist for the CPU"):
        kernel_number("linear/gemv")


def test_the_compiler_compares_every_struct_of_parameters() -> None:
    """The headers that tools/cpu_kernels.py has written say where Python puts each member."""
    with_params = [name for name, file in FILES.items() if members_of(file.source, "Params")]
    assert len(with_params) > 40
    for name in with_params:
        header = (ROOT / "build" / "cpu" / "include" / f"{name}.wgsl.h").read_text(encoding="utf-8")
        first = members_of(FILES[name].source, "Params")[0].name
        c_name = f"{name.rpartition('/')[2]}_params"
        assert f"__builtin_offsetof({c_name}, {first}" in header


def test_a_checkout_without_them_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tables, "KERNELS_FOLDER", tmp_path)
    with pytest.raises(GpuUnavailableError, match=r"not compiled here .* run: make setup"):
        tables.kernel_table.__wrapped__()
    with pytest.raises(GpuUnavailableError, match=r"has no kernels\.wasm"):
        tables.module_code.__wrapped__("kernels.wasm")


def test_a_constant_that_the_shader_lacks_is_refused() -> None:
    kernel = kernel_source("elementwise/fill", {})
    with pytest.raises(GraphError, match="'elementwise/fill' has no constant SIDE"):
        constant_bits(kernel, {"SIDE": 32})
