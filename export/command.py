"""The command `inpage export`: convert a checkpoint to a model folder."""

import argparse
import re
import sys
import textwrap
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from export.errors import ExportError
from export.quantisation import QUANTISATIONS
from py_runtime.base.errors import InpageError
from py_runtime.base.printing import print_plainly
from py_runtime.decoder.families import FAMILIES

DIFFERS, USER_ERROR = 1, 2  # exit statuses
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}
EPILOG = """\
examples:
  inpage export default -o models/SmolLM2-135M-Instruct
  inpage export path/to/checkpoint -o models/mine --verify
  inpage export owner/name -o models/mine --quant q8 --max-seq-len 4096
  inpage export FILE.gguf -o models/mine
  inpage export owner/name --dry-run     says what would be written

`inpage inspect models/mine` shows what is in a model folder.

families:
{families}
A GGUF file of these also runs as it is, without an export: put it into models/."""


def main(argv: list[str]) -> int:
    """Export what the arguments ask for, and return the exit status.

    Faults of the input are one line and exit status 2; a model that differs from torch is 1.
    """
    console = Console(stderr=True, highlight=False)
    try:
        return export(_parser().parse_args(argv), console)
    except (InpageError, OSError) as error:  # a folder that cannot be written, a full disk
        print_plainly(f"error: {error}", file=sys.stderr)
        return USER_ERROR
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def families_in_words() -> str:
    """Return the families as docs/families.md lists them, in lines that a terminal shows whole."""
    names = ", ".join(family.known_as for family in FAMILIES)
    return textwrap.fill(names, 78, initial_indent="  ", subsequent_indent="  ")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="inpage export",
        description="Convert a checkpoint to a model folder that the page loads.",
        epilog=EPILOG.format(families=families_in_words()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="a Hugging Face folder, a hub id such as owner/name, a .gguf file, or 'default'",
    )
    parser.add_argument("-o", "--out", type=Path, help="the folder to write (models/NAME)")
    parser.add_argument(
        "--quant",
        choices=QUANTISATIONS,
        default="q4gsw",
        help="for the float weights of a checkpoint (default: q4gsw); a GGUF keeps its types",
    )
    parser.add_argument(
        "--group-size", type=int, choices=(32, 64, 128), default=32, help="of q4gsw (default: 32)"
    )
    parser.add_argument(
        "--max-seq-len", type=int, metavar="N", help="positions of the KV cache (2048)"
    )
    parser.add_argument(
        "--shard-size",
        type=_size,
        default="128M",
        metavar="SIZE",
        help="of a file of weights, at most (default: 128M, so 128 MB)",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be written")
    parser.add_argument("--verify", action="store_true", help="run the result against torch")
    return parser


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMG]?)", text.upper())
    if not match or not int(match[1]):
        raise argparse.ArgumentTypeError(f"'{text}' is not a size such as 128M")
    return int(match[1]) * UNITS[match[2]]


def export(arguments: argparse.Namespace, console: Console) -> int:
    """Exit status: DIFFERS where --verify finds that the result differs from torch."""
    # Here, not above: torch and transformers take seconds to import, and --help needs neither.
    from export.pipeline import Request, export_model, prepare
    from export.verify import verify_model

    request = Request(
        source=arguments.source,
        quantisation=arguments.quant,
        group_size=arguments.group_size,
        context=arguments.max_seq_len,
        shard_size=arguments.shard_size,
    )
    if arguments.out is None and not arguments.dry_run:
        raise ExportError("say where to write it: -o models/NAME")
    with console.status("reading the source, asking torch for goldens, exporting the graph"):
        prepared = prepare(request, with_goldens=not arguments.dry_run)
    for warning in prepared.source.warnings:
        console.print(f"warning: {warning}")
    console.print(_closing_table(prepared.facts()))
    if arguments.dry_run:
        console.print("dry run: nothing was written")
        return 0
    with _progress(console) as progress:
        export_model(prepared, arguments.out, progress)
    console.print(f"wrote {arguments.out}")
    if arguments.verify:
        with console.status("verifying: the graph natively, against torch"):
            result = verify_model(prepared, arguments.out)
        console.print(_closing_table(result.rows))
        if result.faults:
            print(
                f"{arguments.out} differs from torch: {'; '.join(result.faults)}", file=sys.stderr
            )
            return DIFFERS
    return 0


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=False),
        TimeElapsedColumn(),
        console=console,
    )


def _closing_table(rows: dict[str, str]) -> Table:
    table = Table(show_header=False, box=None)
    for name, value in rows.items():
        table.add_row(name, value)
    return table
