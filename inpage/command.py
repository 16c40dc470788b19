"""The command `inpage`: everything that inpage does from a terminal."""

import argparse
import asyncio
import importlib
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import inpage
from py_runtime import __version__
from py_runtime.base.defaults import DEFAULTS, DEVICE_VARIABLE
from py_runtime.base.errors import InpageError
from py_runtime.base.printing import print_plainly
from py_runtime.gguf.part_names import model_name

if TYPE_CHECKING:
    from py_runtime.model import AnyModel

USAGE = """\
usage: inpage COMMAND …

inpage chat MODEL        chat with a model in this terminal
inpage api MODEL         serve a model to OpenAI clients on this machine
inpage serve             serve the page (only in a checkout of inpage)
inpage export SOURCE     convert a checkpoint to a model folder (only in a checkout of inpage)
inpage inspect MODEL     show what a model folder, a .gguf or a .pte contains
inpage verify MODEL      compare a model folder with what PyTorch computed

`inpage COMMAND --help` lists the options of a command."""
MODEL = (
    "a model folder such as models/NAME, a .gguf or a .pte file, the URL of one of these, "
    "hf:owner/name on the Hugging Face Hub, or the URL of its page there"
)
SETTINGS = {
    "temperature": "0 always takes the most likely token",
    "top_p": "sample from the most likely tokens that add up to this probability",
    "top_k": "sample from this many most likely tokens; 0: from all",
    "min_p": "drop tokens less likely than this share of the best one",
    "repetition_penalty": "above 1 avoids tokens that were used before",
}
INTERRUPTED = 130  # what shells expect: 128 plus the number of the signal
CHECKOUT = Path(__file__).parent.parent  # site-packages, if inpage was installed as a wheel

Command = Callable[[list[str]], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name, and return the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    name, rest = (given[0], given[1:]) if given else ("--help", [])
    if name in COMMANDS:
        return COMMANDS[name](rest)
    if name == "--version":
        print(f"inpage {__version__}")
        return 0
    if name in ("--help", "-h"):
        print(USAGE)
        return 0
    print(USAGE, file=sys.stderr)
    refuse(f"there is no command {name!r}")
    return 2


def chat(arguments: list[str]) -> int:
    """Chat in this terminal until the input ends."""
    parser = argparse.ArgumentParser(
        prog="inpage chat",
        description="Chat with a model in this terminal. Models from the Hugging Face Hub are kept "
        "in your cache folder; HF_TOKEN opens gated ones, and HF_ENDPOINT names a mirror.",
    )
    parser.add_argument("model", metavar="MODEL", help=MODEL)
    parser.add_argument("--system", metavar="TEXT", help="system prompt")
    for name, default in DEFAULTS.items():
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=type(default),
            default=default,
            metavar="N",
            help=f"{SETTINGS[name]} (%(default)s)",
        )
    add_adapter_option(parser)
    add_draft_option(parser)
    parser.add_argument(
        "--max-tokens", type=int, metavar="N", help="limit of an answer (what the context holds)"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="the same seed gives the same text")
    add_device_options(parser)
    options = parser.parse_args(arguments)
    fields = {name: getattr(options, name) for name in (*DEFAULTS, "max_tokens", "seed")}

    async def work() -> int:
        from py_runtime.app.terminal import TerminalChat
        from py_runtime.folder import notes
        from py_runtime.graph.device_choice import choose_device

        device = await choose_device(options.device, options.threads, notes)
        chat = TerminalChat(
            options.model, options.system, fields, options.adapter, options.kv, options.draft
        )
        return await chat.run(device)

    return run(options.model, work(), options.device)


def inspect(arguments: list[str]) -> int:
    """Show what a model contains; exit status 1 says that it cannot be loaded."""
    parser = argparse.ArgumentParser(
        prog="inpage inspect",
        description="Show what a model contains and whether it can be loaded.",
    )
    parser.add_argument("model", metavar="MODEL", help=MODEL)
    parser.add_argument(
        "--data", metavar="FILE.ptd", nargs="+", default=[], help="the data files of a .pte"
    )
    options = parser.parse_args(arguments)

    async def work() -> int:
        from inpage.inspection import inspect as show

        return await show(options.model, options.data)

    return run(options.model, work())


def verify(arguments: list[str]) -> int:
    """Compare a model with PyTorch; exit status 1 says that it differs by more than rounding."""
    parser = argparse.ArgumentParser(prog="inpage verify")
    parser.add_argument("model", metavar="MODEL", help="a model folder: its goldens are compared")
    parser.add_argument("--thorough", action="store_true", help="all goldens, which takes minutes")
    add_device_options(parser)
    options = parser.parse_args(arguments)

    async def work() -> int:
        from py_runtime.model import writer
        from py_runtime.model.verify import verify as compare

        model = await inpage.load(options.model, **loading(options))
        try:
            report = await compare(writer(model), thorough=options.thorough)
        finally:
            model.unload()
        print_plainly(f"{report.table}\n\n{report.summary}")
        return 0 if report.ok else 1

    return run(options.model, work(), options.device)


def api(arguments: list[str]) -> int:
    """Serve a model to OpenAI clients until it is interrupted."""
    parser = argparse.ArgumentParser(
        prog="inpage api", description="Serve a model on this machine as OpenAI's API does."
    )
    parser.add_argument("model", metavar="MODEL", help=MODEL)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=8080, help="port (%(default)s; 0: a free one)")
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="another name of this server (may be repeated)",
    )
    add_adapter_option(parser)
    add_draft_option(parser)
    add_device_options(parser)
    options = parser.parse_args(arguments)
    try:
        from inpage.http_api import serve_api
    except ImportError as error:
        return refuse(f"{error.name} is missing: pip install 'inpage[native]'")

    async def load() -> "AnyModel":
        from py_runtime.base.messages import worded
        from py_runtime.model import Model, writer

        model = await inpage.load(options.model, draft=options.draft, **loading(options))
        if isinstance(model, Model) and model.caches.said is not None:
            print_plainly(f"inpage: {worded(model.caches.said)}", file=sys.stderr)
        for where, strength in options.adapter:
            await writer(model).adapters.load(where, strength)
        return model

    work = serve_api(load, options.host, options.port, options.allow_host)
    return run(options.model, work, options.device)


def add_device_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what a model runs on."""
    parser.add_argument(
        "--device",
        choices=["gpu", "cpu"],
        help="what to run the model on (a graphics card if there is one, else the processor; "
        f"{DEVICE_VARIABLE} in the environment says so, too)",
    )
    parser.add_argument(
        "--threads", type=int, metavar="N", help="threads of the processor (all but one core)"
    )
    parser.add_argument(
        "--kv",
        choices=["f32", "f16", "q8", "q4"],
        help="how the keys and values of the context are kept: q8 takes about a quarter of the "
        "memory of f32 and hardly changes answers, q4 an eighth and changes them (f32; f16 on "
        "graphics cards that know it)",
    )


def loading(options: argparse.Namespace) -> dict[str, Any]:
    """Return what inpage.load is to be told of the options."""
    return {"device": options.device, "threads": options.threads, "kv": options.kv}


def add_adapter_option(parser: argparse.ArgumentParser) -> None:
    """Add the option for adapters."""
    parser.add_argument(
        "--adapter",
        type=adapter_of,
        action="append",
        default=[],
        metavar="PATH[:STRENGTH]",
        help="a LoRA adapter to apply: a folder of PEFT's, or a .gguf (may be repeated)",
    )


def add_draft_option(parser: argparse.ArgumentParser) -> None:
    """Add the option for a draft."""
    parser.add_argument(
        "--draft",
        metavar="MODEL",
        help="a smaller model of the same family, which proposes tokens: answers stay the same, "
        "and come sooner where it is much quicker",
    )


def adapter_of(given: str) -> tuple[str, float]:
    """Split PATH[:STRENGTH]; a path may hold colons of its own."""
    path, _, strength = given.rpartition(":")
    try:
        return (path, float(strength)) if path else (given, 1.0)
    except ValueError:
        return given, 1.0


def in_checkout(command: str, module: str) -> Command:
    """Return a command whose code is part of a checkout but not of the wheel."""

    def call(arguments: list[str]) -> int:
        if not (CHECKOUT / "pyproject.toml").is_file():
            return refuse(f"`inpage {command}` only works in a checkout of inpage")
        try:
            code = importlib.import_module(module)
        except ImportError as error:
            return refuse(f"{error.name} is missing: run `make setup`")
        return int(code.main(arguments))

    return call


def run(model: str, work: Coroutine[None, None, int], device: str | None = None) -> int:
    """Run a command to its end; faults of the input are one line, not a traceback.

    A GPU that was asked for may be software, where there is no other.
    """
    if (device or os.environ.get(DEVICE_VARIABLE)) == "gpu":
        from py_runtime.app.software_gpu import use_software_if_alone

        use_software_if_alone()
    try:
        return asyncio.run(work)
    except InpageError as error:
        return refuse(error_line(model, error))
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # the port is taken, say
        return refuse(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED


def error_line(model: str, error: InpageError) -> str:
    """Return what is wrong after the model's path or address, unless the text begins with it."""
    text, file = str(error), PurePath(model).name
    names = (model, file, model_name(file))
    return text if text.startswith(tuple(filter(None, names))) else f"{model}: {text}"


def refuse(text: str) -> int:
    """Print why the command cannot do its work, and return the exit status."""
    print_plainly(f"inpage: {text}", file=sys.stderr)
    return 1


COMMANDS: dict[str, Command] = {
    "chat": chat,
    "api": api,
    "serve": in_checkout("serve", "serve"),
    "export": in_checkout("export", "export.command"),
    "inspect": inspect,
    "verify": verify,
}
