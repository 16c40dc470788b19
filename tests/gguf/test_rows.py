"""Embeddings for each layer: their rows come from the file as tokens ask for them.

The table never goes to the GPU.
"""

from pathlib import Path

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind
from gguf import GGUFReader, dequantize

from py_runtime.base.errors import InpageError
from py_runtime.gguf.model import GgufModel, open_model
from py_runtime.gguf.token_rows import GgufTokenRows
from py_runtime.model.gguf_store import GgufStore
from py_runtime.program import Program, TensorValue
from py_runtime.weights import kept_rows
from tests.export.gguf_files import write_gguf
from tests.gguf.in_runtime import BytesSource
from tests.runners import wait

pytestmark = pytest.mark.torch

TABLE = "per_layer_token_embd.weight"


class Counted(BytesSource):
    """A source that counts reads."""

    reads = 0

    async def read(self, offset: int, nbytes: int) -> bytes:
        self.reads += 1
        return await super().read(offset, nbytes)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "x.gguf"
    write_gguf(path, "gemma 4", "gemma4", Kind.F16)
    return path


@pytest.fixture(scope="module")
def table(path: Path) -> np.ndarray:
    """Return the table as the gguf package reads it."""
    tensor = next(each for each in GGUFReader(path).tensors if each.name == TABLE)
    return np.array(dequantize(tensor.data, tensor.tensor_type))


def opened(path: Path) -> tuple[Counted, GgufModel, GgufTokenRows]:
    source = Counted(np.fromfile(path, np.uint8))
    model = wait(open_model([source]))
    assert model.token_rows is not None
    return source, model, model.token_rows


def test_rows_are_those_of_the_table(path: Path, table: np.ndarray) -> None:
    _, _, rows = opened(path)
    for tokens in ([5], [7, 5, 7, 0], [len(table) - 1, *range(40)]):
        found = wait(rows.read(tokens))
        assert found.shape == (1, len(tokens), rows.columns)
        assert np.array_equal(found[0], table[tokens])


def test_a_row_that_was_used_is_not_read_again(
    path: Path, table: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_rows, "KEPT_ROWS", 3)
    source, _, rows = opened(path)
    before = source.reads
    for tokens, reads in (([1, 2, 1], 2), ([2, 3], 3), ([1], 3), ([4, 5], 5), ([2], 6)):
        assert np.array_equal(wait(rows.read(tokens))[0], table[tokens])
        assert source.reads - before == reads


def test_rows_that_are_no_numbers_are_named(path: Path) -> None:
    data = np.fromfile(path, np.uint8)
    model = wait(open_model([BytesSource(data)]))
    assert model.token_rows is not None
    offset = model.file.tensors[TABLE].info.offset
    data[offset : offset + 2].view("<f2")[0] = np.inf
    with pytest.raises(InpageError, match=r"per_layer_token_embd.*infinite or not numbers"):
        wait(model.token_rows.read([1, 0]))


def test_the_table_is_not_among_what_goes_to_the_gpu(path: Path, table: np.ndarray) -> None:
    source, model, _ = opened(path)
    names = {name for _, _, name in model.program.constants()}
    assert "embed_tokens.weight" in names
    assert not {name for name in names if name.startswith("embed_tokens_per_layer")}
    tokens, _, rows = (model.program.values[given.value] for given in model.program.inputs)
    assert isinstance(tokens, TensorValue)
    assert isinstance(rows, TensorValue)
    assert rows.dims == (*tokens.dims, table.shape[1])
    held = wait(GgufStore("x", [source]).manifest()).gpu_bytes
    assert held <= floats(model.program)


def floats(program: Program) -> int:
    """Bytes of all constants and states."""
    return sum(
        4 * int(np.prod(value.dims))
        for value in program.values
        if isinstance(value, TensorValue) and (value.constant or value.state)
    )
