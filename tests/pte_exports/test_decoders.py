"""Whole toy decoders from ExecuTorch's Llama exporter, against the same model in eager torch."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.golden import Tolerance, compare
from tests.pte.loaded import LoadedPte, loaded
from tests.pte_exports.decoders import (
    CONTEXT,
    DECODERS,
    LONGEST_CALL,
    VOCABULARY,
    Decoder,
    EagerDecoder,
    export,
    write_random_checkpoint,
)
from tests.pte_exports.table import TABLE, Record
from tests.runners import Runner

pytestmark = pytest.mark.timeout(1800)  # with the export of a decoder

LOGITS = Tolerance(2e-3, relative_rms=1e-4)
STEPS = 40
# Rows and position of each call on one loaded graph: prefill, decode, chunks, and restarts, one of
# them as long as a call can be, then on to the last position but one, where the exporter stops.
MIXED = [
    *((17, 0), (1, 17), (1, 18), (5, 19), (1, 24)),
    *((30, 0), (1, 30), (3, 0), (1, 3), (12, 4)),
    *((LONGEST_CALL, 0), (CONTEXT - LONGEST_CALL - 2, LONGEST_CALL), (1, CONTEXT - 2)),
    (1, 0),
]


@dataclass(frozen=True)
class Exported:
    decoder: Decoder
    path: Path
    torch: EagerDecoder


@pytest.fixture(scope="module", params=DECODERS, ids=lambda decoder: decoder.name)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    decoder: Decoder = request.param
    folder = tmp_path_factory.mktemp(decoder.name)
    write_random_checkpoint(folder, decoder.family, seed=9)
    return Exported(decoder, export(decoder, folder), EagerDecoder(decoder, folder))


@pytest.fixture
def graph(exported: Exported, runner: Runner) -> Iterator[LoadedPte]:
    with loaded(runner, exported.path) as module:
        yield module


def test_greedy_tokens_are_torchs(
    exported: Exported, graph: LoadedPte, runner: Runner, record_property: Record
) -> None:
    prompt = random_tokens(9, seed=1)
    tokens, logits = graph.greedy(np.array([prompt]), STEPS)
    wanted = exported.torch.greedy(prompt, STEPS)
    assert tokens == wanted
    assert len(set(wanted)) > STEPS // 4, "a model that repeats itself shows little"
    rows = exported.torch.logits([*prompt, *wanted])[len(prompt) - 1 : -1]
    worst = float(np.abs(np.stack(logits) - rows).max())
    calls = f"{len(prompt)}, then 1 at {len(prompt)} to {len(prompt) + STEPS - 2}"
    record_property(TABLE, [exported.decoder.name, runner.name, calls, LOGITS.absolute, worst])
    compare("logits of 40 steps", np.stack(logits), rows, LOGITS)


def test_prefill_decode_and_restarts_on_one_graph(
    exported: Exported, graph: LoadedPte, runner: Runner, record_property: Record
) -> None:
    context: list[int] = []
    worst = 0.0
    for number, (rows, position) in enumerate(MIXED):
        tokens = random_tokens(rows, seed=100 + number)
        context = [*context[:position], *tokens]
        (got,) = graph.run([np.array([tokens]), np.array([position])])
        wanted = exported.torch.logits(context)[position:]  # [S, V]
        wanted = wanted[None] if exported.decoder.full_logits else wanted[-1:]
        compare(f"call {number}: {rows} at {position}", got, wanted, LOGITS)
        worst = max(worst, float(np.abs(got - wanted).max()))
    calls = " ".join(f"{rows}@{position}" for rows, position in MIXED)
    record_property(TABLE, [exported.decoder.name, runner.name, calls, LOGITS.absolute, worst])


def test_what_the_file_says_of_itself(exported: Exported, graph: LoadedPte) -> None:
    constants = graph.description["constants"]
    assert constants["get_max_seq_len"] == LONGEST_CALL + 1
    assert constants["get_max_context_len"] == CONTEXT
    assert constants["get_vocab_size"] == VOCABULARY
    assert constants["get_bos_id"] == 1
    assert constants["get_eos_ids"] == [2, 3]
    assert constants["use_kv_cache"] is True
    tokens, position = graph.description["methods"]["forward"]["inputs"]
    assert (tokens["dims"], tokens["dtype"]) == ([1, LONGEST_CALL], "int64")
    assert (position["dims"], position["dtype"]) == ([1], "int64")


@cache
def random_tokens(count: int, seed: int) -> list[int]:
    tokens: list[int] = np.random.default_rng(seed).integers(0, VOCABULARY, count).tolist()
    return tokens
