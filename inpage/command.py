"""The command `inpage`: chat, ask, look inside and serve, from a terminal.

inpage chat MODEL        talk to a model; see `inpage chat --help`
inpage inspect FILE      tell what a .gguf or .pte holds
inpage verify MODEL      compare it with what PyTorch computed
inpage api MODEL         answer OpenAI's requests on this machine
inpage serve             the page, from a checkout of inpage
inpage export SOURCE     write a model folder, from a checkout of inpage
"""

import argparse
import asyncio
import importlib
import sys
from collections.abc import Callable, Coroutine, Sequence

from py_runtime import __version__
from py_runtime.app import commands
from py_runtime.app.software_gpu import use_software_if_alone
from py_runtime.base.errors import InpageError

Command = Callable[[list[str]], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Gives the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    name, rest = (given[0], given[1:]) if given else ("--help", [])
    if name in COMMANDS:
        return COMMANDS[name](rest)
    if name == "--version":
        print(f"inpage {__version__}")
        return 0
    wants_help = name in ("--help", "-h")
    print(__doc__.strip(), file=sys.stdout if wants_help else sys.stderr)
    if not wants_help:
        print(f"inpage: there is no command {name!r}", file=sys.stderr)
    return 0 if wants_help else 2


def chat(arguments: list[str]) -> int:
    """As `python -m py_runtime chat`."""
    return commands.main(["chat", *arguments])


def inspect(arguments: list[str]) -> int:
    """As `python -m py_runtime inspect`."""
    return commands.main(["inspect", *arguments])


def verify(arguments: list[str]) -> int:
    """1 where it differs from PyTorch by more than rounding does."""
    parser = argparse.ArgumentParser(prog="inpage verify")
    parser.add_argument("model", metavar="MODEL", help="a model folder: its goldens are compared")
    parser.add_argument("--thorough", action="store_true", help="all goldens, which takes minutes")
    options = parser.parse_args(arguments)

    async def work() -> int:
        import inpage
        from py_runtime.model.verify import verify as compare

        model = await inpage.load(options.model)
        try:
            report = await compare(model, thorough=options.thorough)
        finally:
            model.unload()
        print(f"{report.table}\n\n{report.summary}")
        return 0 if report.ok else 1

    return run(options.model, work())


def api(arguments: list[str]) -> int:
    """Until it is interrupted."""
    parser = argparse.ArgumentParser(
        prog="inpage api", description="OpenAI's requests, answered by a model on this machine."
    )
    parser.add_argument("model", metavar="MODEL", help=commands.MODEL)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=8080, help="%(default)s; 0: a free one")
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="another name of it"
    )
    options = parser.parse_args(arguments)
    try:
        from inpage.http_api import serve_api
    except ImportError as error:
        return refuse(f"{error.name} is missing: pip install 'inpage[native]'")
    work = serve_api(options.model, options.host, options.port, options.allow_host)
    return run(options.model, work)


def of_checkout(module: str, what: str) -> Command:
    """A command whose code is part of a checkout, and not of the wheel."""

    def call(arguments: list[str]) -> int:
        try:
            command = importlib.import_module(module)
        except ImportError:
            return refuse(f"{what} works from a checkout of inpage, where `make setup` was run")
        return int(command.main(arguments))

    return call


def run(model: str, work: Coroutine[None, None, int]) -> int:
    """Our own errors are one line, not a traceback."""
    use_software_if_alone()
    try:
        return asyncio.run(work)
    except InpageError as error:
        return refuse(commands.error_line(model, error))
    except OSError as error:  # an address that is taken
        return refuse(str(error))
    except KeyboardInterrupt:
        return commands.INTERRUPTED


def refuse(text: str) -> int:
    """The exit status that goes with it."""
    print(f"inpage: {text}", file=sys.stderr)
    return 1


COMMANDS: dict[str, Command] = {
    "chat": chat,
    "inspect": inspect,
    "verify": verify,
    "api": api,
    "serve": of_checkout("serve", "the page"),
    "export": of_checkout("export.command", "the exporter"),
}
