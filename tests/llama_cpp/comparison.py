"""The comparison of the engine's answers with llama.cpp's, and the table that a run ends with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tests.llama_cpp.oracle import Continuation

TABLE = "difference from llama.cpp"  # the property's name, of a list of COLUMNS
COLUMNS = ("case", "runs", "steps", "near ties", "at most", "worst relative RMS")
TIES_IN_ALL = 0.25  # of the steps of a case, where ties are allowed at all


class Record(Protocol):
    """pytest's fixture `record_property`."""

    def __call__(self, name: str, value: object) -> None: ...


@dataclass(frozen=True)
class Gate:
    """The distance that is allowed between the two.

    llama.cpp rounds activations to the precision that suits the type of the weights, while the
    engine computes with float32.
    """

    relative_rms: float  # of the logits of a step
    tie: float = 0.0  # the lead, in standard deviations of the logits, that is none; 0: any counts


def compare(
    case: str,
    runner: str,
    gate: Gate,
    theirs: Sequence[Continuation],
    ours: dict[str, Any],
    record: Record,
) -> None:
    """Check the logits and token of every step, and the engine's own continuation."""
    ties, worst = 0, 0.0
    for given, logits, greedy in zip(theirs, ours["logits"], ours["greedy"], strict=True):
        tied = []
        for step, token in enumerate(given.tokens):
            where = f"{case}, step {step} of {len(given.tokens)}"
            worst = max(worst, relative_rms(logits[step], given.logits[step]))
            lead = float(logits[step].max() - logits[step][token])  # of the engine's own choice
            tied.append(int(logits[step].argmax()) != token)
            assert not tied[-1] or lead < gate.tie * logits[step].std(), (
                f"{where}: {logits[step].argmax()}, by {lead:.3g}, but llama.cpp says {token}"
            )
        clear = tied.index(True) if any(tied) else len(tied)  # beyond it the texts may differ
        assert greedy[:clear] == given.tokens[:clear], f"{case}: the continuation"
        ties += sum(tied)
    steps = sum(len(given.tokens) for given in theirs)
    record(TABLE, [case, runner, steps, ties, gate.relative_rms, worst])
    assert worst < gate.relative_rms, f"{case}: relative RMS {worst:.1e}"
    assert ties <= TIES_IN_ALL * steps, f"{case}: {ties} of {steps} steps differ"


def relative_rms(found: np.ndarray, wanted: np.ndarray) -> float:
    """Return the size of the difference, as a share of the size of what is wanted."""
    assert found.shape == wanted.shape
    difference = found.astype(np.float64) - wanted
    return float(np.sqrt((difference**2).mean() / (wanted.astype(np.float64) ** 2).mean()))
