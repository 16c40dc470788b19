"""Stock .pte files with inputs and torch's answers, as ExecuTorch's exporter made them.

They are in memory, and many of them in one file.
"""

import lzma
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tests import packing
from tests.pte.loaded import loaded, refusal
from tests.runners import Runner

STORED = Path(__file__).parent / "stock_cases.npz.xz"  # tests/pte_exports/op_catalogue.py writes it
SMALLEST_RELATIVE = 1e-6  # below it, a relative difference is of this


@dataclass(frozen=True)
class StockCase:
    suite: str
    name: str
    pte: np.ndarray  # uint8
    calls: list[list[list[np.ndarray]]]  # inputs and outputs of each, on one loaded graph
    atol: float
    rtol: float

    @property
    def nbytes(self) -> int:
        arrays = [array for call in self.calls for ends in call for array in ends]
        return sum(array.nbytes for array in (self.pte, *arrays))

    def write(self, folder: Path) -> Path:
        path = folder / f"{self.suite} {self.name}.pte"
        path.write_bytes(self.pte.tobytes())
        return path


def write_cases(path: Path, cases: Iterable[StockCase]) -> None:
    content = packing.pack([asdict(case) for case in cases])
    path.write_bytes(lzma.compress(content))


def read_cases(path: Path) -> list[StockCase]:
    return [StockCase(**fields) for fields in packing.unpack(lzma.decompress(path.read_bytes()))]


def check_case(case: StockCase, runner: Runner, folder: Path) -> None:
    with loaded(runner, case.write(folder)) as graph:
        for number, (inputs, wanted) in enumerate(case.calls):
            where = f"{case.suite} {case.name}, call {number}"
            outputs = graph.run(inputs)
            # The catalogue may look at the first few of the outputs alone.
            assert len(outputs) >= len(wanted) > 0, where
            for index, (got, golden) in enumerate(zip(outputs, wanted, strict=False)):
                check_output(f"{where}, output {index}", got, golden, case)


def check_output(where: str, got: np.ndarray, wanted: np.ndarray, case: StockCase) -> None:
    """Apply the catalogue's rule: floats are near by either tolerance, anything else is equal."""
    assert got.shape == wanted.shape, f"{where}: shape {got.shape}, torch has {wanted.shape}"
    if wanted.dtype.kind != "f":
        assert (got == wanted).all(), f"{where}: {(got != wanted).sum()} differ"
        return
    same = got == wanted  # infinities
    with np.errstate(invalid="ignore"):
        difference = np.where(same, 0.0, np.abs(got.astype(np.float64) - wanted))
    relative = difference / np.maximum(np.abs(wanted.astype(np.float64)), SMALLEST_RELATIVE)
    near = same | (difference <= case.atol) | (relative <= case.rtol)
    assert near.all(), f"{where}: off by {difference.max():.3e} at most, {(~near).sum()} elements"


def check_refused(case: StockCase, ops: set[str], runner: Runner, folder: Path) -> None:
    """Refused for these ops, or for others outside the delegate, and all are named."""
    answer = refusal(runner, case.write(folder))
    where = f"{case.suite} {case.name}"
    assert answer["class"] == "UnsupportedPteError", f"{where}: {answer}"
    for name in answer["facts"]["names"]:
        assert name in answer["message"]
        assert name.split(" ")[0] in ops, f"{where}: {name}"
