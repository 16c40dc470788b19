"""A folder's embeddings for each layer: rows of them come from its files, in any stored form.

The table never goes to the GPU.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser
from rich.progress import Progress

from export.pipeline import Request, export_model, prepare
from export.reference import stored_values
from py_runtime.decoder.token_rows import TABLE, table_of
from py_runtime.folder.layout import FileRange, ModelFolder
from py_runtime.folder.on_disk import open_model_folder
from py_runtime.model.folder_token_rows import FolderTokenRows, LocalFolder
from py_runtime.weights.byte_source import FileSource
from tests.conftest import serving
from tests.export.checkpoints import save_checkpoint
from tests.runners import started_page, wait

pytestmark = pytest.mark.torch

TOKENS = [5, 300, 5, 0, 17]


@pytest.fixture(scope="module", params=["none", "q8"])
def exported(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, np.ndarray]:
    """Export a folder, and return it with the values of its table."""
    folder = tmp_path_factory.mktemp("rows")
    save_checkpoint(folder / "checkpoint", "gemma 4", {"hidden_size_per_layer_input": 32})
    prepared = prepare(Request(str(folder / "checkpoint"), request.param), with_goldens=False)
    export_model(prepared, folder / "model", Progress(disable=True))
    return folder / "model", stored_values(prepared.source, TABLE)


def test_rows_are_those_of_the_table(exported: tuple[Path, np.ndarray]) -> None:
    store = LocalFolder(exported[0])
    folder = wait(store.open())
    rows = store.token_rows(folder)
    assert rows is not None
    assert np.array_equal(wait(rows.read(TOKENS))[0], exported[1][TOKENS])
    names = {name for _, _, name in folder.program.constants()}
    assert not {name for name in names if name.startswith("embed_tokens_per_layer")}
    assert folder.manifest.gpu_bytes > 0
    assert len(folder.program.inputs) == 3


def test_rows_may_lie_in_pieces(exported: tuple[Path, np.ndarray]) -> None:
    stored = open_model_folder(exported[0])
    table = table_of(stored.program)
    assert table is not None
    rows = FolderTokenRows(table, in_pieces(stored), lambda file: FileSource(exported[0] / file))
    assert np.array_equal(wait(rows.read(TOKENS))[0], exported[1][TOKENS])


@pytest.mark.browser
@pytest.mark.parametrize("exported", ["q8"], indirect=True)
def test_rows_of_a_site_and_of_the_browser_s_storage(
    exported: tuple[Path, np.ndarray], shared_browser: Browser
) -> None:
    folder, table = exported
    with (
        serving("--models", str(folder.parent)) as address,
        started_page(shared_browser, address) as page,
    ):
        found = page.run(
            "tests.model.rows_in_page", "rows", where=f"models/{folder.name}", tokens=TOKENS
        )
    assert found["kept"]
    for rows in (found["site"], found["stored"]):
        assert np.array_equal(rows[0], table[TOKENS])


def in_pieces(folder: ModelFolder) -> ModelFolder:
    """Return the same bytes as runs of 700, so that rows lie across two of them or three."""

    def cut(piece: FileRange) -> tuple[FileRange, ...]:
        starts = range(0, piece.nbytes, 700)
        return tuple(
            FileRange(piece.file, piece.offset + at, min(700, piece.nbytes - at)) for at in starts
        )

    return replace(
        folder,
        tensors={
            name: replace(place, pieces=cut(place.pieces[0]))
            for name, place in folder.tensors.items()
        },
    )
