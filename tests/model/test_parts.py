"""The parts of the model room that need no GPU.

These are: where rows lie, what goldens hold, how far results may differ, which file a place means,
what a device must have, which tokens end an answer.
"""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from py_runtime.base.dtypes import F16, F32, I8, I32
from py_runtime.base.errors import GpuOutOfMemoryError, RequestError
from py_runtime.base.model_errors import ModelError, ModelTensorsError
from py_runtime.base.sizes import percent
from py_runtime.decoder.token_rows import TokenRowsTable
from py_runtime.folder.layout import FileRange, TensorPlace
from py_runtime.folder.manifest import NEEDED_LIMITS
from py_runtime.gguf.planes import planes
from py_runtime.gguf.tensor_types import BY_NAME
from py_runtime.gpu import CPU, GPU
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.model import verify as verifying
from py_runtime.model.config import Config, read_json
from py_runtime.model.embed import parse_inputs
from py_runtime.model.folder_token_rows import FolderTokenRows
from py_runtime.model.goldens import NoGoldensError, read_goldens
from py_runtime.model.requirements import CPU_MARGIN, check_requirements
from py_runtime.model.stores import beside, file_name
from py_runtime.model.verify import (
    FLOATS,
    HALVES,
    Difference,
    LayerCheck,
    LengthCheck,
    Precision,
    TextCheck,
    VerifyReport,
    difference,
    precision_of,
)
from tests.pte.memory_source import MemorySource
from tests.runners import wait

# Rows of a table ----------------------------------------------------------------------------------


def pieces_of(data: bytes, sizes: list[int]) -> tuple[tuple[FileRange, ...], dict[str, bytes]]:
    """Cut the data into pieces of these sizes, each in a file of its own behind 7 other bytes."""
    pieces, files, at = [], {}, 0
    for number, size in enumerate(sizes):
        files[f"{number}"] = bytes(7) + data[at : at + size]
        pieces.append(FileRange(f"{number}", 7, size))
        at += size
    assert at == len(data)
    return tuple(pieces), files


class Something(MemorySource):
    """Nobody asks for nothing."""

    async def read(self, offset: int, nbytes: int) -> bytes:
        assert nbytes > 0
        return await super().read(offset, nbytes)


@pytest.mark.parametrize("sizes", [[140], [20, 120], [30, 110], [1, 1, 138], [60, 5, 75], [139, 1]])
def test_a_row_may_lie_in_several_pieces(sizes: list[int]) -> None:
    """Seven rows of five floats: 20 bytes each."""
    table = np.arange(35, dtype=np.float32).reshape(7, 5)
    pieces, files = pieces_of(table.tobytes(), sizes)
    folder = SimpleNamespace(tensors={"t": TensorPlace(F32, (7, 5), pieces)})
    found = TokenRowsTable(cast(Any, None), "f32", ("t",), 5)
    rows = FolderTokenRows(found, cast(Any, folder), lambda file: Something(files[file], file))
    tokens = [6, 0, 1, 3, 2, 5, 4]
    assert np.array_equal(wait(rows.read(tokens)), table[None, tokens])


@pytest.mark.parametrize("name", ["Q8_0", "F16"])
def test_a_row_has_its_scales_beside_it(name: str) -> None:
    kind = BY_NAME[name]
    rng = np.random.default_rng(3)
    values = rng.integers(-100, 100, (5, 64)).astype(np.float32)
    if name == "F16":
        parts = {"weight": values.astype(np.float16).view(np.uint8).reshape(-1)}
        dtypes = {"weight": (F16, (5, 64))}
    else:
        blocks = np.zeros((10, 34), np.uint8)
        blocks[:, :2] = np.float16(0.5).tobytes()[0], np.float16(0.5).tobytes()[1]
        blocks[:, 2:] = values.astype(np.int8).view(np.uint8).reshape(10, 32)
        parts, values = planes(kind, blocks.reshape(-1)), values * np.float32(0.5)
        dtypes = {"weight": (I8, (5, 64)), "scales": (F16, (5, 2))}
    files = {part: data.tobytes() for part, data in parts.items()}
    folder = SimpleNamespace(
        tensors={
            part: TensorPlace(dtype, dims, (FileRange(part, 0, len(files[part])),))
            for part, (dtype, dims) in dtypes.items()
        }
    )
    table = TokenRowsTable(cast(Any, None), name.lower(), tuple(dtypes), 64)
    rows = FolderTokenRows(table, cast(Any, folder), lambda file: MemorySource(files[file], file))
    assert np.array_equal(wait(rows.read([4, 0, 3])), values[None, [4, 0, 3]])


# Goldens ------------------------------------------------------------------------------------------


def goldens_of(tensors: dict[str, np.ndarray], file: str | None = "g") -> Any:
    data, places = b"", {}
    for name, tensor in tensors.items():
        dtype = {"f": F32, "i": I32}[tensor.dtype.kind]
        places[name] = TensorPlace(dtype, tensor.shape, (FileRange("g", len(data), tensor.nbytes),))
        data += tensor.tobytes()

    async def read(folder: Any, name: str) -> bytes:
        return data

    manifest = SimpleNamespace(goldens=file, name="m")
    folder = SimpleNamespace(manifest=manifest, goldens=places)
    return wait(read_goldens(cast(Any, folder), cast(Any, SimpleNamespace(read=read))))


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


WHOLE = {
    "hidden_tokens": ints(1, 2),
    "hidden.embedding": floats(1, 2, 3),
    "hidden.norm": floats(4, 5, 6),
    "logits_12": floats(1),
    "tokens_12": ints(*range(12)),
    "logits_7": floats(2, 3),
    "tokens_7": ints(*range(7)),
    "prompt_0": ints(9),
    "continuation_0": ints(3, 4),
    "margins_0": floats(0.5, 0.25),
}


def test_what_goldens_hold() -> None:
    found = goldens_of(WHOLE)
    assert found.hidden_tokens == [1, 2]
    assert {name: row.tolist() for name, row in found.hidden.items()} == {
        "embedding": [1, 2, 3],
        "norm": [4, 5, 6],
    }
    assert [(each.tokens, each.logits.tolist()) for each in found.logits] == [
        ([*range(7)], [2, 3]),
        ([*range(12)], [1]),
    ]
    (text,) = found.texts
    assert (text.prompt, text.continuation, text.margins) == ([9], [3, 4], [0.5, 0.25])


def test_goldens_without_hidden_states_need_no_tokens_for_them() -> None:
    rest = {name: data for name, data in WHOLE.items() if not name.startswith("hidden")}
    found = goldens_of(rest)
    assert (found.hidden_tokens, found.hidden) == ([], {})


@pytest.mark.parametrize(
    "change",
    [
        {"hidden.norm": ints(1)},
        {"hidden.norm": floats().reshape(0)},
        {"hidden.norm": floats(1, 2).reshape(1, 2)},
        {"margins_0": floats(0.5)},
        {"tokens_7": None},
        {"hidden_tokens": None},
    ],
)
def test_goldens_of_another_form(change: dict[str, Any]) -> None:
    tensors = {name: data for name, data in (WHOLE | change).items() if data is not None}
    with pytest.raises(ModelTensorsError, match="the golden"):
        goldens_of(tensors)


def test_a_folder_without_goldens() -> None:
    for tensors, file in ((WHOLE, None), ({}, "g")):
        with pytest.raises(NoGoldensError):
            goldens_of(tensors, file)


# How far results may differ -----------------------------------------------------------------------


def test_differences_are_in_units_of_what_is_wanted() -> None:
    found = difference("x", floats(3, 4, 3, 4.5), floats(3, 4, 3, 4))
    unit = math.sqrt((9 + 16 + 9 + 16) / 4)
    assert found.relative_rms == pytest.approx(0.25 / unit)
    assert found.worst == pytest.approx(0.5 / unit)
    assert found.allowed is FLOATS
    nothing = difference("x", floats(0.5, 0), floats(0, 0))
    assert nothing.worst == 0.5, "where nothing is wanted, in units of one"
    for wrong in (math.nan, math.inf):
        assert difference("x", floats(wrong, 1), floats(1, 1)).worst == math.inf
    with pytest.raises(ModelTensorsError):
        difference("x", floats(1), floats(1, 1))


@pytest.mark.parametrize(
    ("rms", "worst", "is_ok"),
    [(1e-3, 1e-2, True), (1.1e-3, 1e-2, False), (1e-3, 1.1e-2, False), (0, 0, True)],
)
def test_both_must_be_small(rms: float, worst: float, is_ok: bool) -> None:
    assert Difference(rms, worst).ok == is_ok
    assert Difference(5 * rms, 5 * worst, HALVES).ok == is_ok


def test_caches_of_halves_may_differ_more_and_products_most() -> None:
    def precision(**target: Any) -> Precision:
        return precision_of(KernelTarget(wide=True, **target))

    assert precision() is FLOATS
    assert precision(kv="f16") is HALVES
    in_halves = precision(kv="f16", one_token="f16", many_tokens="f16")
    assert in_halves.relative_rms > HALVES.relative_rms
    assert in_halves.clear_margin == HALVES.clear_margin == pytest.approx(10 * FLOATS.clear_margin)


@pytest.mark.parametrize(
    ("share", "told"),
    [
        *((0, "0 %"), (4e-6, "0.00040 %"), (0.031, "3.1 %"), (0.5, "50 %"), (1.234, "123 %")),
        *((0.1, "10 %"), (0.0999, "10.0 %"), (0.00999, "1.00 %")),
    ],
)
def test_shares_in_words(share: float, told: str) -> None:
    assert percent(share) == told


def concluded(kind: str = GPU, **parts: Any) -> VerifyReport:
    report = VerifyReport(**parts)
    verifying._conclude(report, kind)
    return report


GOOD = [LayerCheck("embedding", 1e-6, 1e-5, True), LayerCheck("layers.0", 3e-6, 1e-5, True)]
BAD = LayerCheck("layers.1", 0.2, 1.0, False)
NORM = LayerCheck("norm", 0.3, 1.0, False)


def test_a_report_tells_the_first_wrong_layer_and_the_worst() -> None:
    report = concluded(layers=[*GOOD, BAD, NORM])
    assert (report.ok, report.first_wrong_layer, report.worst_layer) == (False, "layers.1", "norm")
    assert "layer 2 of 2 differs by 20 %" in report.summary
    assert "the last norm differs by 30 %" in concluded(layers=[*GOOD, NORM]).summary
    assert (
        "the embedding differs" in concluded(layers=[LayerCheck("embedding", 1, 1, False)]).summary
    )


def test_a_layer_of_another_name_is_called_by_it() -> None:
    odd = LayerCheck("layers.x", 1, 1, False)
    assert "layers.x differs by 100 %" in concluded(layers=[odd]).summary


def test_a_report_without_fault() -> None:
    texts = [TextCheck("a", 3, True, None), TextCheck("b", 4, True, None)]
    lengths = [LengthCheck(7, 2e-6, 1e-5, True)]
    report = concluded(layers=GOOD, lengths=lengths, texts=texts, not_checked=["layers.5"])
    assert (report.ok, report.first_wrong_layer, report.worst_layer) == (True, None, "layers.0")
    assert "the largest difference in any layer is 0.00030 %" in report.summary
    assert "the first 7 tokens of 2 answers are the same" in report.summary
    assert "Not checked, since the graph does not name them: layers.5." in report.summary
    assert "in the results is 0.00020 %" in concluded(lengths=lengths).summary
    assert concluded(lengths=lengths).worst_layer is None
    assert report.summary.startswith("This GPU computes")
    assert concluded(CPU, layers=GOOD).summary.startswith("This processor computes")


def test_a_report_of_wrong_results_and_answers() -> None:
    lengths = [LengthCheck(1, 0.5, 1, False), LengthCheck(7, 1e-6, 1, True)]
    texts = [TextCheck("a", 3, False, 2), TextCheck("b", 4, True, None)]
    report = concluded(layers=GOOD, lengths=lengths, texts=texts)
    assert not report.ok
    assert "the results after 1 token differ by 50 %" in report.summary
    assert "7 token" not in report.summary
    assert "an answer differs from PyTorch's at token 3" in report.summary
    assert report.summary.count("at token") == 1


# Places, devices, ends ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("a/b/c.gguf", "c.gguf"),
        ("c.gguf", "c.gguf"),
        ("a\\b\\c.gguf", "c.gguf"),
        ("https://x.org/a/c%20d.gguf?download=true", "c d.gguf"),
        ("https://x.org/a/", ""),
    ],
)
def test_the_last_part_of_a_place(where: str, name: str) -> None:
    assert file_name(where) == name


def test_files_beside_others() -> None:
    assert beside("https://x.org/a/b.gguf", "c.gguf") == "https://x.org/a/c.gguf"
    assert Path(beside("a/b.gguf", "c.gguf")) == Path("a/c.gguf")


@pytest.mark.parametrize(("held", "size"), [(1000, 10), (0, 1000)])
def test_what_a_cpu_must_have_left(held: int, size: int) -> None:
    """Files stand for what the graph holds, where nobody counted that."""
    requires = SimpleNamespace(features=[], limits={})
    manifest = SimpleNamespace(name="m", requires=requires, least_gpu_bytes=held, size=size)

    def check(left: int, freed: int = 0) -> None:
        device = SimpleNamespace(bytes_left=left, limits={"max_buffer_size": 4_000_000_000})
        check_requirements(cast(Any, manifest), cast(Any, device), freed)

    check(CPU_MARGIN + 1000)
    check(CPU_MARGIN, freed=1000)
    with pytest.raises(GpuOutOfMemoryError) as caught:
        check(CPU_MARGIN + 999)
    assert caught.value.said is not None
    assert caught.value.said["code"] == "memory_too_small"
    assert "m needs 67.1 MB of memory; on the processor 67.1 MB of 4.0 GB are left" in str(
        caught.value
    )


@pytest.mark.parametrize("limit", ["maxBufferSize", "maxComputeInvocationsPerWorkgroup"])
def test_what_a_device_must_have(limit: str) -> None:
    def check(has: dict[str, int], features: set[str] | None = None) -> None:
        requires = SimpleNamespace(features=["shader-f16"], limits={limit: 100})
        manifest = SimpleNamespace(name="m", requires=requires)
        given = {"shader-f16"} if features is None else features
        device = SimpleNamespace(features=given, limits=has, bytes_left=None)
        check_requirements(cast(Any, manifest), cast(Any, device))

    check({limit: 100})
    check({limit: 101})
    is_size = limit in NEEDED_LIMITS
    for has in ({limit: 99}, {}):
        with pytest.raises(GpuOutOfMemoryError if is_size else ModelError) as caught:
            check(has)
        count = has.get(limit, 0)
        assert (f"allows {count} bytes" if is_size else f"has {count}") in str(caught.value)
    with pytest.raises(ModelError, match="needs the GPU feature 'shader-f16'"):
        check({limit: 100}, set())


@pytest.mark.parametrize(
    ("config", "named", "ends"),
    [
        ({}, {}, set()),
        ({"eos_token_id": 5}, {}, {5}),
        ({"eos_token_id": [5, 6]}, {}, {5, 6}),
        ({"eos_token_id": 0}, {"eos_token": "</s>"}, {0, 7}),
        ({"eos_token_id": None}, {"eos_token": {"content": "</s>"}}, {7}),
        ({"eos_token_id": [5]}, {"eos_token": "unknown"}, {5}),
    ],
)
def test_tokens_that_end_an_answer(config: Any, named: Any, ends: set[int]) -> None:
    tokenizer = SimpleNamespace(id_of={"</s>": 7}.get)
    found = Config(named, config)
    assert found.end_tokens(cast(Any, tokenizer)) == ends
    assert found.chat_template is None


def test_a_config_file_is_an_object() -> None:
    assert read_json("f", b'{"a": 1}') == read_json("f", {"a": 1}) == {"a": 1}
    for data, fault in ((b"[1]", "f is not a JSON object"), (b"{", "f is not JSON")):
        with pytest.raises(ModelError, match=fault):
            read_json("f", data)


@pytest.mark.parametrize(
    ("given", "prompts"),
    [
        ("ab", [["ab"]]),
        ([1, 2], [[1, 2]]),
        (["ab", "c"], [["ab"], ["c"]]),
        ([[1], [2, 3]], [[1], [2, 3]]),
        (["a", [3]], [["a"], [3]]),
        ([0], [[0]]),
    ],
)
def test_one_input_or_several(given: Any, prompts: Any) -> None:
    def tokens(each: Any) -> list[Any]:
        return [each] if isinstance(each, str) else list(each)

    assert parse_inputs(cast(Any, SimpleNamespace(prompt_tokens=tokens)), given) == prompts


@pytest.mark.parametrize("given", [[], None, 5, {}])
def test_no_input(given: Any) -> None:
    with pytest.raises(RequestError, match="input must be a text"):
        parse_inputs(cast(Any, None), given)
