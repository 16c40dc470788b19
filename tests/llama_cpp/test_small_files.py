"""Small models of each family and of each type of weights: llama.cpp's logits and greedy tokens."""

from functools import cache
from pathlib import Path

import pytest

from tests.export.family_configs import FAMILIES
from tests.llama_cpp.comparison import Record, compare, relative_rms
from tests.llama_cpp.conftest import Engine
from tests.llama_cpp.oracle import Continuation, LlamaCpp, LlamaCppError
from tests.llama_cpp.small_files import CHANGES, STEPS, SmallFile, family_file, type_files

CASES = [
    *(family_file(name, CHANGES[name].config if name in CHANGES else {}) for name in FAMILIES),
    *type_files(),
]


@cache
def continuations(small: SmallFile, files: Path, llama_cpp: LlamaCpp) -> list[Continuation]:
    """Write the file, and return llama.cpp's answers: natively and in the page they are the same."""
    small.write(files / small.file_name)
    return llama_cpp.ask(files / small.file_name, small.prompts(), STEPS).continuations


@pytest.mark.parametrize("small", CASES, ids=lambda small: small.name)
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
