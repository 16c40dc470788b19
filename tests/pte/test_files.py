"""Small files that ExecuTorch's own exporter wrote (make_files.py), unchanged, against torch."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.golden import Tolerance, compare
from tests.packing import unpack
from tests.pte.loaded import LoadedPte, loaded, refusal
from tests.runners import Runner

pytestmark = [pytest.mark.torch, pytest.mark.thorough_in_page]

FILES = Path(__file__).parent / "files"
TOLERANCE = Tolerance(1e-4, relative_rms=1e-5)
DECODER = Tolerance(1e-3, relative_rms=1e-4)
WITH_ANSWERS = sorted(path.stem for path in FILES.glob("*.npz"))


def data_of(name: str) -> list[Path]:
    return sorted(FILES.glob(f"{name}_*.ptd"))


def calls_of(name: str) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = unpack((FILES / f"{name}.npz").read_bytes())
    return calls


def check_call(name: str, graph: LoadedPte, number: int, call: dict[str, Any]) -> None:
    tolerance = DECODER if name.startswith("decoder") else TOLERANCE
    outputs, afterwards = graph.run_and_keep(call["inputs"], call["method"])
    for index, (got, wanted) in enumerate(zip(outputs, call["outputs"], strict=True)):
        compare(f"{name}, call {number}, output {index}", got, wanted, tolerance)
    for got, wanted in zip(afterwards, call.get("afterwards", call["inputs"]), strict=True):
        assert (got == wanted).all(), f"call {number} leaves other inputs than torch does"


@pytest.mark.parametrize("name", WITH_ANSWERS)
def test_equals_torch_on_one_loaded_module(name: str, runner: Runner) -> None:
    with loaded(runner, FILES / f"{name}.pte", data_of(name)) as graph:
        for number, call in enumerate(calls_of(name)):
            check_call(name, graph, number, call)


def test_there_are_as_many_files_as_there_were() -> None:
    """A glob that finds nothing would test nothing."""
    assert WITH_ANSWERS == [
        "caches_given",
        "caches_inside",
        "decoder_4w",
        "decoder_fp32",
        "dynamic_rows",
        "external_data",
        "integers",
        "methods",
        "q4_padded",
        "static_linear",
    ]


def test_a_decoder_starts_anew_in_a_second_module(native: Runner) -> None:
    """The module has the caches, not the file."""
    calls = calls_of("decoder_fp32")
    for _ in range(2):
        with loaded(native, FILES / "decoder_fp32.pte") as graph:
            check_call("decoder_fp32", graph, 0, calls[0])


def test_constant_methods(native: Runner) -> None:
    with loaded(native, FILES / "methods.pte") as graph:
        assert sorted(graph.description["methods"]) == ["doubled", "forward"]
        assert graph.description["constants"] == {
            "get_max_seq_len": 32,
            "get_eos_ids": [7],
            "get_stop_ids": [2, 3],
            "get_scale": 0.5,
            "use_kv_cache": False,
            "get_name": "toy",
        }


def test_ends_of_a_method(native: Runner) -> None:
    with loaded(native, FILES / "integers.pte") as graph:
        ends = graph.description["methods"]["forward"]
        assert [end["dtype"] for end in ends["inputs"]] == ["float32", "int64", "int64"]
        assert [end["dtype"] for end in ends["outputs"]] == ["float32", "int64", "int64"]
    with loaded(native, FILES / "caches_given.pte") as graph:
        assert graph.description["methods"]["forward"]["mutated_inputs"] == [3, 4]


def test_int64_that_does_not_fit_is_refused(native: Runner) -> None:
    scale, ids, offset = calls_of("integers")[0]["inputs"]
    with (
        loaded(native, FILES / "integers.pte") as graph,
        pytest.raises(Exception, match="int32"),
    ):
        graph.run([scale, ids, offset + np.int64(2) ** 40])


def test_data_files_that_are_not_there(native: Runner) -> None:
    none, one = (
        refusal(native, FILES / "external_data.pte", data)
        for data in ([], data_of("external_data")[:1])
    )
    for error in (none, one):
        assert error["class"] == "PteError"
        assert ".ptd" in error["message"]


def test_kernels_around_delegates_are_computed(runner: Runner) -> None:
    x = torch.tensor([0.5, -1.0, 3.0, 0.25, -2.0, 1.0])
    with loaded(runner, FILES / "partly_delegated.pte") as graph:
        found = graph.run([x.numpy()])
    for got, wanted in zip(found, ((x * 2).sort().values.sigmoid(), x.cumsum(0)), strict=True):
        compare("partly delegated", got, wanted.numpy(), TOLERANCE)


def test_delegates_of_other_backends_are_named(native: Runner) -> None:
    error = refusal(native, FILES / "other_backend.pte")
    assert error["class"] == "UnsupportedPteError"
    assert any("XnnpackBackend" in name for name in error["facts"]["names"])
