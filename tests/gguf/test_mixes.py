"""The quantisations people have, of small random models: torch's logits and greedy tokens."""

from pathlib import Path

import numpy as np
import pytest

from export.decoder_graph import export_decoder
from export.gguf_source import GgufSource
from export.reference import greedy, last_logits, reference_decoder
from export.sources import Quantisation
from py_runtime.decoder.tensors import weight_names
from py_runtime.gguf.errors import UnsupportedGgufError
from py_runtime.gguf.model import open_model
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.graph.buffers import GUARANTEED_LIMITS
from py_runtime.graph.builder import Builder, LaunchSpec
from py_runtime.model import program_sizes
from py_runtime.passes import DEFAULT_PASSES, run_passes
from py_runtime.weights.byte_source import FileSource
from tests.decoder.test_program import Canonical
from tests.gguf.mixes import ARCHITECTURES, MIXES, k_mix, metadata, tensors_of, write
from tests.gguf.test_constants import upload_all
from tests.gguf.written import Tensor, file
from tests.golden import Tolerance, compare
from tests.runners import NativeRunner, Runner, wait

pytestmark = [pytest.mark.torch, pytest.mark.thorough]

STEPS = 10
CLEAR_MARGIN = 1e-3  # below it torch's own next token is a coin's toss
PROMPT = [5, 100, 7, 200, 31, 8, 250, 9, 44]
GATE = "blk.1.ffn_gate.weight"
IN_THE_PAGE = ("Q4_K_M", "IQ4_XS")  # the logits; tests/hub/test_mixes.py has the tokens of all
ROOMY = GUARANTEED_LIMITS | {
    "max_compute_invocations_per_workgroup": 256,
    "max_compute_workgroup_storage_size": 32 << 10,
}


CLOSE = Tolerance(1e-3, 1e-5)


def check(
    family: str, mix: str, folder: Path, runner: Runner, tolerance: Tolerance = CLOSE
) -> None:
    path = folder / "x.gguf"
    path.write_bytes(write(family, MIXES[mix]))
    source = GgufSource.open(path, Quantisation("none"))
    decoder = reference_decoder(source, source.decoder_config(None))
    tokens, margins = greedy(decoder, PROMPT, STEPS)
    data = np.frombuffer(path.read_bytes(), np.uint8)
    found = runner.run("tests.gguf.in_runtime", "greedy", data=data, prompt=PROMPT, steps=STEPS)
    wanted = last_logits(decoder, PROMPT).astype(np.float64)
    compare(f"{family} {mix}", found["logits"], wanted, tolerance)
    clear = next((at for at, margin in enumerate(margins) if margin < CLEAR_MARGIN), STEPS)
    assert clear > 3, "a case that compares next to nothing"
    assert found["tokens"][:clear] == tokens[:clear]
    assert found["left"] == 0


# As on a chessboard: each family comes with half of the mixes, and each mix with half of them.
PAIRS = [
    (family, mix)
    for row, family in enumerate(ARCHITECTURES)
    for column, mix in enumerate(MIXES)
    if (row + column) % 2 == 0
]


@pytest.mark.parametrize(("family", "mix"), PAIRS)
def test_torch_s_tokens(family: str, mix: str, tmp_path: Path, native: Runner) -> None:
    check(family, mix, tmp_path, native)


def test_a_head_beyond_what_the_device_binds(
    tmp_path: Path, native: NativeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Matrices whose sums a residual is added to are cut by rows, too."""
    most = 132_000  # all but weights needs less
    limits = native.device.limits | {"max_storage_buffer_binding_size": most}
    monkeypatch.setattr(native.device, "limits", limits)
    monkeypatch.setattr(program_sizes, "PORTABLE", KernelTarget(binding_bytes=most))
    monkeypatch.setitem(MIXES, "large", k_mix("Q4_K", "F16"))
    check("llama", "large", tmp_path, native)


@pytest.mark.browser
@pytest.mark.parametrize("mix", IN_THE_PAGE)
def test_torch_s_tokens_in_the_page(mix: str, tmp_path: Path, in_page: Runner) -> None:
    check("llama", mix, tmp_path, in_page)


@pytest.mark.parametrize(
    ("mix", "buffers", "wanted"),
    [
        ("Q6_K", 10, 9),
        ("Q4_K_M", 10, 10),
        ("IQ4_XS", 10, 11),
        *((mix, 12, 9) for mix in ("Q4_K_M", "Q5_K_M", "IQ4_XS")),
    ],
)
def test_a_token_takes_few_kernels(mix: str, buffers: int, wanted: int, tmp_path: Path) -> None:
    """A layer takes four kernels; a v of another type than q and k may take one more.

    That is where a kernel cannot bind the weights of both.
    """
    path = tmp_path / "x.gguf"
    path.write_bytes(write("llama", MIXES[mix]))
    model = wait(open_model([FileSource(path)]))
    target = KernelTarget(wide=True, lanes=32, storage_buffers=buffers)
    builder = Builder(run_passes(model.program, target, DEFAULT_PASSES), ROOMY, target)
    builder.build_ops()
    kernels = [step.pipeline.label for step in builder.steps if isinstance(step, LaunchSpec)]
    assert sum(label.startswith("linear/gemv") for label in kernels) == wanted


@pytest.mark.parametrize("mix", ["Q4_K_M", "dynamic"])
def test_the_exporter_takes_it_as_it_is(mix: str, tmp_path: Path) -> None:
    """The same program over the same bytes as the file gives without torch."""
    path = tmp_path / "x.gguf"
    path.write_bytes(write("llama", MIXES[mix]))
    model = wait(open_model([FileSource(path)]))
    source = GgufSource.open(path, Quantisation("q4gsw"))
    exported = export_decoder(source, source.decoder_config(None)).program
    assert Canonical(exported).whole() == Canonical(model.program).whole()
    found = upload_all(model)
    for weight in weight_names(model.config):
        for part, array in source.parts(weight).items():
            owner = weight.removesuffix(".weight")
            assert found[f"{owner}.{part}"] == array.tobytes(), (weight, part)
    assert source.warnings == []


def test_types_without_kernels_are_refused_by_name(tmp_path: Path) -> None:
    tensors = {"IQ2_XS": 74, "IQ1_S": 50, "TQ2_0": 66}
    for name, nbytes in tensors.items():
        mixed = MIXES["Q8_0"]
        data = file(
            metadata("llama"),
            [
                Tensor(t.name, t.dims, name, bytes(t.dims[0] * nbytes)) if t.name == GATE else t
                for t in tensors_of("llama", mixed)
            ],
        )
        path = tmp_path / "x.gguf"
        path.write_bytes(data)
        with pytest.raises(UnsupportedGgufError, match=rf"tensors of {name}, which this engine"):
            wait(open_model([FileSource(path)]))
