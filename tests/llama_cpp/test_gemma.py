"""A second real model, gemma-3-270m in Q4_K_M: llama.cpp's greedy tokens, and its tokenizer's."""

import os
import shutil
from pathlib import Path

import pytest

from tests.llama_cpp.comparison import Gate, Record, compare
from tests.llama_cpp.conftest import Engine
from tests.llama_cpp.gemma import NAME, gemma_gguf
from tests.llama_cpp.oracle import Answer, LlamaCpp

pytestmark = pytest.mark.timeout(1800)  # with 253 MB to fetch, and a software GPU to compute with

STEPS = 12
GATE = Gate(1e-1, tie=0.15)  # llama.cpp rounds activations to eight bits
BEGIN = 2  # the token that begins every text
TEXTS = (
    "The capital of France is",
    "def fibonacci(n):\n    if n < 2:\n\treturn n\n",
    "In the year 1969, 600 million people; 3.14159 × 2 = 6.28318.",
    "Grüße aus Köln, «déjà vu», привет мир, 你好,世界, こんにちは 🙂👩‍👩‍👧 \u200b.",
    "  two spaces before,\n\n\nthree lines,  two   three    four spaces and one after ",
    "<bos>a turn<end_of_turn>\n<start_of_turn>user\n<eos><unused7><pad>",
    "don't DON'T can't've — “quotes” 'single' `ticks` </s> <b>bold</b>",
)
# Beyond the window of 512 tokens that most layers have.
LONG = "".join(f"The quick brown fox jumps over the lazy dog number {n}. " for n in range(1, 45))
ALL_TEXTS = [*TEXTS, LONG]
CONTINUED = (0, 1, 3, len(TEXTS))  # by their numbers
CONTINUED_IN_THE_PAGE = CONTINUED[:2]


@pytest.fixture(scope="module")
def theirs(files: Path, llama_cpp: LlamaCpp) -> Answer:
    """Return what llama.cpp makes of the texts: their tokens, and how some of them go on."""
    try:
        os.link(gemma_gguf(), files / NAME)
    except OSError:  # on another disk
        shutil.copyfile(gemma_gguf(), files / NAME)
    texts = llama_cpp.ask(files / NAME, [], 0, ALL_TEXTS).texts
    prompts = [[BEGIN, *texts[number]] for number in CONTINUED]
    return Answer(llama_cpp.ask(files / NAME, prompts, STEPS).continuations, texts)


def test_tokens_are_llama_cpps(theirs: Answer, engine: Engine, record_property: Record) -> None:
    continued = CONTINUED if engine.runner.name == "native" else CONTINUED_IN_THE_PAGE
    wanted = theirs.continuations[: len(continued)]
    found = engine.runner.run(
        "tests.llama_cpp.in_runtime",
        "follow",
        where=engine.where + NAME,
        prompts=[[BEGIN, *theirs.texts[number]] for number in continued],
        continuations=[given.tokens for given in wanted],
        texts=ALL_TEXTS,
    )
    assert found["texts"] == theirs.texts
    compare("gemma-3-270m", engine.runner.name, GATE, wanted, found, record_property)
