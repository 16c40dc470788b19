"""Limits of decoders, which are those of the kernels; reading a config.json needs no shaders."""

from py_runtime.decoder import limits, mixtures
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.gpu.shader_sources import all_shaders


def test_a_mixture_may_have_as_many_experts_as_the_kernel_takes() -> None:
    route = figures_of("experts/route")
    assert (route["MAX_EXPERTS"], route["MAX_USED"]) == (limits.MAX_EXPERTS, limits.MAX_USED)


def test_a_delta_nets_key_may_be_as_wide_as_the_kernel_takes() -> None:
    assert figures_of("states/fragments/delta")["MAX_KEYS"] == limits.MAX_KEYS


def test_a_state_of_mamba_may_have_as_many_rows_as_the_kernel_takes() -> None:
    assert figures_of("states/fragments/scan")["MAX_STATE"] == limits.MAX_STATE


def test_the_clamped_gate_has_the_kernels_numbers() -> None:
    gate = dict(all_shaders().file("linear/fragments/gate_clamped").constants)
    assert float(gate["STEEPNESS"]) == mixtures.CLAMPED_ALPHA
    assert float(gate["BOUND"]) == mixtures.CLAMPED_LIMIT
