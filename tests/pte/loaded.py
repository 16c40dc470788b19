"""A .pte file on a runner's GPU: loaded once, called as often as a test likes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tests.runners import Runner, ShippingRunner

CASES = "tests.pte.in_runtime"
IN_PAGE = Path("/home/pte")
PIECE_BYTES = 4 << 20


class LoadedPte:
    def __init__(self, runner: Runner, path: str, description: dict[str, Any]) -> None:
        self._runner = runner
        self._path = path
        self.description = description

    def run(self, inputs: Sequence[Any], method: str = "forward") -> list[Any]:
        return self.run_and_keep(inputs, method)[0]

    def run_and_keep(self, inputs: Sequence[Any], method: str = "forward") -> list[list[Any]]:
        """Return the outputs, and the inputs as the method left them."""
        kept: list[list[Any]] = self._runner.run(
            CASES, "run_method", path=self._path, method=method, inputs=list(inputs)
        )
        return kept

    def greedy(self, prompt: np.ndarray, steps: int) -> tuple[list[int], list[np.ndarray]]:
        tokens, logits = self._runner.run(
            CASES, "greedy", path=self._path, prompt=prompt, steps=steps
        )
        return tokens, logits


@contextmanager
def loaded(runner: Runner, path: Path, data: Sequence[Path] = ()) -> Iterator[LoadedPte]:
    there, data_there = _bring(runner, path), [_bring(runner, file) for file in data]
    description = runner.run(CASES, "open_module", path=there, data=data_there)
    try:
        yield LoadedPte(runner, there, description)
    finally:
        runner.run(CASES, "close_module", path=there)


def refusal(runner: Runner, path: Path, data: Sequence[Path] = ()) -> dict[str, Any]:
    """Return the error with which loading the file is refused."""
    there, data_there = _bring(runner, path), [_bring(runner, file) for file in data]
    answer: dict[str, Any] = runner.run(CASES, "refusal", path=there, data=data_there)
    return answer


def _bring(runner: Runner, path: Path) -> str:
    """Return where the runtime finds the file; the page has a file system of its own."""
    if not isinstance(runner, ShippingRunner):
        return str(path)
    there = str(IN_PAGE / path.name)
    content = np.frombuffer(path.read_bytes(), np.uint8)
    for at in range(0, len(content), PIECE_BYTES):
        piece = content[at : at + PIECE_BYTES]
        runner.run(CASES, "append", path=there, piece=piece, at=at)
    return there
