"""`python -m py_runtime chat MODEL`: the engine in a terminal, over wgpu-py.

`python -m py_runtime inspect FILE` tells what a GGUF or ExecuTorch file holds. Of models on the
Hugging Face Hub (`hf:owner/name`), a copy is kept in the user's cache folder; the environment's
HF_TOKEN opens those that are gated, and HF_ENDPOINT names a mirror.
"""

import argparse
import asyncio
import os
import sys
from pathlib import PurePath

from py_runtime.app.software_gpu import use_software_if_alone
from py_runtime.app.terminal import TerminalChat
from py_runtime.base.defaults import DEFAULTS
from py_runtime.base.errors import InpageError
from py_runtime.gguf.part_names import model_name
from py_runtime.hub.address import leads_to_hub

MODEL = (
    "a model folder, such as models/NAME; a .gguf or .pte; the address of one of these; "
    "hf:owner/name on the Hub, or the address of its page there"
)
INTERRUPTED = 130  # as shells have it: 128 and the signal's number


def parse(arguments: list[str]) -> argparse.Namespace:
    """What `python -m py_runtime` is called with."""
    parser = argparse.ArgumentParser(prog="python -m py_runtime")
    commands = parser.add_subparsers(dest="command", required=True, metavar="chat | inspect")
    chat = commands.add_parser("chat", help="talk to a model in this terminal")
    chat.add_argument(
        "model",
        metavar="MODEL",
        help=MODEL,
    )
    chat.add_argument("--system", metavar="TEXT", help="system prompt")
    add_settings(chat)
    inspect = commands.add_parser("inspect", help="tell what a .gguf or .pte holds, as Markdown")
    inspect.add_argument(
        "model", metavar="FILE", help="a path or an address; hf:owner/name, or its page on the Hub"
    )
    inspect.add_argument("--data", metavar="FILE.ptd", nargs="+", default=[], help="its data files")
    return parser.parse_args(arguments)


def add_settings(chat: argparse.ArgumentParser) -> None:
    """Those of the page's settings, with its defaults."""
    said = {
        "temperature": "0 always takes the likeliest token",
        "top_p": "the likeliest tokens that make up this share",
        "top_k": "this many likeliest tokens; 0: all",
        "min_p": "tokens at least this likely beside the best",
        "repetition_penalty": "above 1 avoids tokens used before",
    }
    for name, default in DEFAULTS.items():
        chat.add_argument(
            f"--{name.replace('_', '-')}",
            type=type(default),
            default=default,
            metavar="N",
            help=f"{said[name]} (%(default)s)",
        )
    chat.add_argument(
        "--max-tokens", type=int, metavar="N", help="of an answer (as many as the context holds)"
    )
    chat.add_argument("--seed", type=int, metavar="N", help="the same seed gives the same text")


async def inspect_gguf(where: str) -> int:
    """0 where it could be loaded. Of one on the Hub the header is read, and no more."""
    from py_runtime.base.markdown import cannot_be_loaded
    from py_runtime.gguf.about import about_gguf
    from py_runtime.gguf.reader import open_gguf
    from py_runtime.model.hub_store import hub_store
    from py_runtime.model.stores import gguf_store

    store = await hub_store(where) if leads_to_hub(where) else gguf_store(where)
    file = await open_gguf(await store.opened_sources())
    try:
        await store.model()
    except InpageError as error:
        print(about_gguf(file, cannot_be_loaded(error)))
        return 1
    print(about_gguf(file, "**It can be loaded.**"))
    return 0


async def inspect_pte_file(where: str, data: list[str]) -> int:
    """0 where it could be loaded."""
    from py_runtime.model.stores import source_of
    from py_runtime.pte import UnsupportedPteError, inspect_pte, open_pte
    from py_runtime.pte.about import about_pte, pte_cannot_be_loaded

    source, data_sources = source_of(where), [source_of(file) for file in data]
    described = await inspect_pte(source, data_sources)
    try:
        await open_pte(source, data_sources)
    except UnsupportedPteError as error:
        print(about_pte(described, pte_cannot_be_loaded(error)))
        return 1
    print(about_pte(described, "**It can be loaded.**"))
    return 0


async def inspect(options: argparse.Namespace) -> int:
    """Gives the exit status."""
    from py_runtime.model.stores import file_name

    if leads_to_hub(options.model) or file_name(options.model).lower().endswith(".gguf"):
        return await inspect_gguf(options.model)
    return await inspect_pte_file(options.model, options.data)


async def chat(options: argparse.Namespace) -> int:
    """Until the input ends; gives the exit status."""
    fields = {name: getattr(options, name) for name in (*DEFAULTS, "max_tokens", "seed")}
    return await TerminalChat(options.model, options.system, fields).run()


def error_line(model: str, error: InpageError) -> str:
    """Return what is wrong after the model's path or address, unless the text begins with it."""
    text, file = str(error), PurePath(model).name
    names = (model, file, model_name(file))
    return text if text.startswith(tuple(filter(None, names))) else f"{model}: {text}"


def main(arguments: list[str]) -> int:
    """Gives the exit status; our own errors are one line, not a traceback."""
    options = parse(arguments)
    use_software_if_alone()
    try:
        return asyncio.run(chat(options) if options.command == "chat" else inspect(options))
    except InpageError as error:
        print(error_line(options.model, error), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read the answer has enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
