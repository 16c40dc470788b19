"""A folder for a machine with a real GPU and no network: make bench-gpu, then run.py there.

python -m bench.gpu_folder OUT [--peers] [--shapes SHAPE ...]
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from bench import machine
from bench.engines import MODEL, OURS
from bench.files import BENCH, bench_files
from bench.fill import TEMPLATE
from bench.prompts import make_prompts
from bench.roofline import arithmetic_per_token, bytes_read_per_token
from bench.run_gpu import TABLE
from bench.synthetic import SHAPES, write_template
from export import architectures
from py_runtime.folder.layout import constants_of
from py_runtime.folder.on_disk import open_model_folder
from tools.compress import ENCODINGS, VariantStore
from tools.errors import UserError, exit_status
from tools.files import ROOT
from tools.site import Site
from tools.static_build import write_site

# The modules that run.py imports: nothing else but the standard library.
SCRIPTS = (
    "__init__.py",
    "engines.py",
    "fill.py",
    "gpu_report.py",
    "machine.py",
    "processes.py",
    "remote.py",
    "report.py",
    "rounds.py",
)
MARKER = "about.json"


def write_folder(out: Path, with_peers: bool, shapes: list[str]) -> None:
    """Beside the old folder first: that one is replaced when all of the new one is there."""
    out = out.resolve()
    if out.exists() and any(out.iterdir()) and not (out / MARKER).is_file():
        raise UserError(f"{out} holds something other than an earlier bench; choose another folder")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as temporary:
        fresh = Path(temporary) / "fresh"
        copy_site(fresh / "site", with_peers)
        for script in SCRIPTS:
            copy(BENCH / script, fresh / "bench" / script)
        copy(BENCH / "run_gpu.py", fresh / "run.py")
        program = open_model_folder(ROOT / "models" / MODEL).program
        read = {OURS: bytes_read_per_token(constants_of(program))}
        hf_config = json.loads((ROOT / "models" / MODEL / "config.json").read_text())
        config = architectures.decoder_config(architectures.read_config(hf_config), None)
        computed = {OURS: arithmetic_per_token(config)}
        for shape in shapes:
            write_template(shape, fresh / "templates" / shape)
            template = json.loads((fresh / "templates" / shape / TEMPLATE).read_text())
            read[f"{OURS}-{shape}"] = template["bytes_read_per_token"]
            computed[f"{OURS}-{shape}"] = template["arithmetic_per_token"]
        about = {
            "commit": machine.commit_of(ROOT),
            "prompts": make_prompts(ROOT / "models" / MODEL),
            "bytes_read_per_token": read,
            "arithmetic_per_token": computed,
        }
        (fresh / MARKER).write_text(json.dumps(about))
        shutil.rmtree(out, ignore_errors=True)
        fresh.rename(out)


def copy_site(folder: Path, with_peers: bool) -> None:
    """Copy the static build without compressed variants, which run.py's server does not send."""
    folder.mkdir(parents=True)
    write_site(Site.of_checkout(), folder, VariantStore())
    for suffix in ENCODINGS.values():
        for variant in folder.rglob(f"*{suffix}"):
            variant.unlink()
    for url, content in bench_files(with_peers).items():
        if isinstance(content, bytes):
            (folder / url).write_bytes(content)
        else:
            copy(content, folder / url)


def copy(source: Path, target: Path) -> None:
    """Copy a file, and make the folders on the way."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def main(arguments: list[str]) -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(prog="make bench-gpu")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--peers", action="store_true", help="the peers and their models, too")
    parser.add_argument(
        "--shapes",
        nargs="*",
        choices=SHAPES,
        default=[name for name in TABLE if name != MODEL],
        metavar="SHAPE",
        help="instead of those of docs/speed.md",
    )
    options = parser.parse_args(arguments)

    def work() -> None:
        write_folder(options.out, options.peers, options.shapes)
        print(f"copy {options.out}, then run there: python3 run.py --table")

    return exit_status(work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
