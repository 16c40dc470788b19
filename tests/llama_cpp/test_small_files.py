"""Small models of each family and of each type of weights: llama.cpp's logits and greedy tokens."""

from functools import cache
from pathlib import Path

import pytest
import torch
from gguf import GGMLQuantizationType

from tests.export.gguf_files import ARCHITECTURES, write_gguf
from tests.llama_cpp.comparison import Record, compare, relative_rms
from tests.llama_cpp.conftest import Engine
from tests.llama_cpp.oracle import Continuation, LlamaCpp, LlamaCppError
from tests.llama_cpp.small_files import (
    CHANGES,
    STEPS,
    SmallFile,
    family_file,
    family_files,
    type_files,
)


@cache
def continuations(small: SmallFile, files: Path, llama_cpp: LlamaCpp) -> list[Continuation]:
    """Write the file, and return llama.cpp's answers, once for both ways that the engine runs."""
    small.write(files / small.file_name)
    return llama_cpp.ask(files / small.file_name, small.prompts(), STEPS).continuations


@pytest.mark.parametrize("small", [*family_files(), *type_files()], ids=lambda small: small.name)
def test_tokens_are_llama_cpps(
    small: SmallFile, engine: Engine, files: Path, llama_cpp: LlamaCpp, record_property: Record
) -> None:
    wanted = continuations(small, files, llama_cpp)
    found = engine.runner.run(
        "tests.llama_cpp.in_runtime",
        "follow",
        where=engine.where + small.file_name,
        prompts=small.prompts(),
        continuations=[given.tokens for given in wanted],
        texts=[],
    )
    compare(small.name, engine.runner.name, small.gate, wanted, found, record_property)


@pytest.mark.parametrize("family", CHANGES)
@torch.no_grad()
def test_changes_are_needed(family: str, tmp_path: Path, llama_cpp: LlamaCpp) -> None:
    """A change must go if llama.cpp loads a file without it and returns torch's logits."""
    small, path = family_file(family, {}), tmp_path / "x.gguf"
    model = write_gguf(path, family, ARCHITECTURES[family], GGMLQuantizationType.F32)
    prompt = small.prompts()[-1]
    if CHANGES[family].refused:
        with pytest.raises(LlamaCppError, match="Failed to load model"):
            llama_cpp.ask(path, [prompt], 1)
        return
    (found,) = llama_cpp.ask(path, [prompt], 1).continuations
    wanted = model(torch.tensor([prompt])).logits[0, -1].numpy()
    assert relative_rms(found.logits[0], wanted) > small.gate.relative_rms
