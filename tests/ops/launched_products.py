"""The combinations of linear kernels that ops launch, as the tables of docs/linear.md.

`python -m tests.ops.launched_products` writes the tables; test_launched_products.py compares them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from export.sources import HuggingFaceSource, Quantisation
from py_runtime import ops  # noqa: F401  (before kernels, which ops import)
from py_runtime.decoder.program import write_decoder
from py_runtime.generation.verifier import with_all_logits
from py_runtime.gpu.kernel_sources import KernelSource
from py_runtime.gpu.kernel_target import ARITHMETICS, MATRICES, KernelTarget
from py_runtime.graph.buffers import GUARANTEED_LIMITS
from py_runtime.graph.builder import Builder
from py_runtime.live.build_context import Caller
from py_runtime.live.launch import Bindable, Launch
from py_runtime.ops.kernels import int8_products
from py_runtime.ops.kernels.few_tokens import GEMV_FEW_INT8
from py_runtime.ops.kernels.int8_products import GEMM_F16, GEMM_INT8, GemvTile
from py_runtime.ops.kernels.matrix_units import GEMM_MATRICES
from py_runtime.passes import DEFAULT_PASSES, run_passes
from py_runtime.program import Program, as_constant
from py_runtime.program.weight_kinds import BLOCK
from tests.export.checkpoints import save_checkpoint
from tests.export.family_configs import FAMILIES
from tests.gguf.test_mixes import ROOMY
from tests.in_runtime import having_enough
from tests.ops.test_mixed_kinds import FEW_BUFFERS, MANY_BUFFERS, NOT_ONE
from tests.ops.test_ops import CASES
from tools.files import ROOT

PAGE = ROOT / "docs/linear.md"
SMALL = {**GUARANTEED_LIMITS, "max_compute_invocations_per_workgroup": 128}
# What decides between kernels: the kind of adapter, its subgroups and arithmetic, and how much a
# kernel may bind.
DEVICES = [
    (KernelTarget(), SMALL, None),
    (KernelTarget(lanes=4), SMALL, None),
    (KernelTarget(lanes=4, storage_buffers=16), ROOMY, None),
    (KernelTarget(wide=True), SMALL, None),
    *(
        (KernelTarget(True, 32, count, one_token=by, many_tokens=by), ROOMY, None)
        for count in (8, 10, 16)
        for by in ARITHMETICS
    ),
    (KernelTarget(True, 32, 10, many_tokens=MATRICES), ROOMY, None),
    (KernelTarget(True, 32, 10), ROOMY, 1),  # as if all matrices were large
]
EPILOGUES = {
    "rows + residual": {"epilogue": "rows", "output": "residual"},
    "rows + bias": {"epilogue": "rows", "output": "bias"},
    "rows + part": {"epilogue": "rows", "output": "part"},
    "rows + scaled": {"epilogue": "rows", "output": "scaled"},
    "swiglu": {"epilogue": "swiglu"},
    "qkv": {"epilogue": "qkv"},
}
WITH_ALL = ("gemma 2", "gemma 4", "olmo 2", "gpt-oss")  # a table with more families is the same
X_FORMS = {
    GEMM_INT8: "planes",
    GEMV_FEW_INT8: "planes",
    GEMM_F16: "halves",
    GEMM_MATRICES: "halves",
}
LOADS = ("block", "tokens", "lanes")  # slots that a device decides, and no op
OF_MODELS, OF_OPS, NONE = "✔", "○", "–"
OF_SECOND_KIND = re.compile(r"\.(v_proj|up_proj)\.weight$")

Combination = tuple[str, frozenset[tuple[str, str]]]  # kernel, plugs


class Recorder(Builder):
    """A builder that keeps what is launched."""

    def __init__(self, program: Program, limits: dict[str, int], target: KernelTarget) -> None:
        super().__init__(program, limits, target)
        self.launched: set[Combination] = set()

    def launch(
        self,
        op: Caller,
        kernel: str | KernelSource,
        plugs: Mapping[str, str],
        bind: Mapping[str, Bindable],
        constants: Mapping[str, float],
    ) -> Launch:
        if isinstance(kernel, str):  # else it is of a user's own op
            self.launched.add((kernel, frozenset(plugs.items())))
        return super().launch(op, kernel, plugs, bind, constants)


def launched_by(programs: Iterable[Program], fused: bool) -> set[Combination]:
    """Return the combinations with an epilogue that programs launch, over all kinds of devices."""
    found: set[Combination] = set()
    for program in programs:
        for target, limits, enough in DEVICES:
            passes = DEFAULT_PASSES if fused else ()
            recorder = Recorder(run_passes(program, target, passes), limits, target)
            with having_enough(enough):
                recorder.build_ops()
            found |= recorder.launched
    return {(kernel, plugs) for kernel, plugs in found if "epilogue" in dict(plugs)}


def programs_of_ops() -> Iterator[Program]:
    """Yield the cases of all ops, and those of weights of several kinds."""
    for case in (*CASES, *FEW_BUFFERS, *(case for case, _ in (*MANY_BUFFERS, *NOT_ONE))):
        yield case.writer.program()


def programs_of_families(families: Iterable[str]) -> Iterator[Program]:
    """Yield a decoder of each family: in floats, quantised, and with v and up of another kind."""
    for family in families:
        with TemporaryDirectory() as folder:
            save_checkpoint(Path(folder), family)
            source = HuggingFaceSource.open(Path(folder), Quantisation("none"))
            config = source.decoder_config(None)
            kinds = source.kinds(config)
        floats = write_decoder(config, kinds, family)
        yield floats
        constants = [found for value in floats.values if (found := as_constant(value))]
        # Weights in blocks have rows of whole blocks; experts go by kernels of their own.
        blocks = {each.name for each in constants if each.dims[-1] % BLOCK == 0}
        chosen = {name for name in blocks & kinds.keys() if "experts" not in name}
        for second in ("q8_0", "q4_0"):
            own = {
                name: replace(kind, name=second if OF_SECOND_KIND.search(name) else "q8_0")
                for name, kind in kinds.items()
                if name in chosen
            }
            written = write_decoder(config, kinds | own, family)
            yield written
            if (of_few := with_all_logits(written)) is not None:
                yield of_few


def table_of_products(of_models: set[Combination], of_ops: set[Combination]) -> str:
    """Return a row for each kernel and source of x, and a column for each epilogue."""
    cells: dict[tuple[str, str, str], dict[str, str]] = {}
    for kernel, frozen in (*of_ops, *of_models):
        plugs = dict(frozen)
        (epilogue,) = (name for name, own in EPILOGUES.items() if own.items() <= plugs.items())
        loads = [f"`{slot}_*`" for slot in LOADS if slot in plugs]
        x = [f"`token_{plugs['token']}`"] if "token" in plugs else []
        weight = "`octets_*`" if "weight" in plugs else "`blocks_*`"
        weight = "`blocks_*` twice" if "blocks_second" in plugs else weight
        plain = X_FORMS.get(kernel, "floats")
        row = (f"`{kernel.removeprefix('linear/')}`", ", ".join([*x, *loads]) or plain, weight)
        mark = OF_MODELS if (kernel, frozen) in of_models else OF_OPS
        if cells.setdefault(row, {}).get(epilogue) != OF_MODELS:
            cells[row][epilogue] = mark
    lines = [
        f"| kernel | x | weight | {' | '.join(EPILOGUES)} |",
        f"| --- | --- | --- |{' :-: |' * len(EPILOGUES)}",
    ]
    for row, marks in sorted(cells.items()):
        lines.append(f"| {' | '.join((*row, *(marks.get(name, NONE) for name in EPILOGUES)))} |")
    return "\n".join(lines)


def table_of_tiles() -> str:
    """Return a row for each tile of linear/gemv_int8."""
    lines = [
        "| tile | invocations | pairs | lanes of a pair | unroll |",
        "| --- | --: | --: | --: | --: |",
    ]
    for name, tile in vars(int8_products).items():
        if isinstance(tile, GemvTile):
            sizes = (tile.workgroup, tile.group_pairs, tile.pair_lanes, tile.unroll)
            lines.append(f"| `{name}` | {' | '.join(map(str, sizes))} |")
    return "\n".join(lines)


def with_tables(page: str, families: Iterable[str] = WITH_ALL) -> str:
    """Return the page with both tables as the code has them; a few families have every kernel."""
    of_models = launched_by(programs_of_families(families), fused=True)
    of_ops = launched_by(programs_of_ops(), fused=False)
    tables = {"products": table_of_products(of_models, of_ops), "tiles": table_of_tiles()}
    for name, table in tables.items():
        marked = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
        page, count = marked.subn(rf"\g<1>{table}\g<2>", page)  # no table has a backslash
        assert count == 1, f"the page has {count} places for the table of {name}"
    return page


def write(path: Path = PAGE) -> None:
    page = path.read_text(encoding="utf-8")
    path.write_text(with_tables(page, FAMILIES), encoding="utf-8")


if __name__ == "__main__":
    write()
