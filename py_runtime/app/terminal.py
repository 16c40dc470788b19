"""A chat in a terminal: prompts from standard input, answers streamed to standard output."""

import signal
import sys
from collections.abc import Callable
from typing import Any

from py_runtime.app.completions import counted
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import InpageError
from py_runtime.base.progress import DOWNLOAD
from py_runtime.base.sizes import in_words
from py_runtime.generation.pieces import Piece, Usage
from py_runtime.gpu import request_device
from py_runtime.model import Model

PROMPT = "> "


class TerminalChat:
    """Ctrl-C stops an answer and keeps it; Ctrl-D leaves. A pipe gives one prompt, all it holds."""

    def __init__(self, where: str, system: str | None, fields: dict[str, Any]) -> None:
        self._where = where
        # Thoughts are shown as they come.
        shown = {"context_overflow": "drop_oldest", "reasoning_format": "none"}
        self._fields = {**fields, **shown}
        self._messages = [{"role": "system", "content": system}] if system else []

    async def run(self) -> int:
        device = await request_device()
        is_terminal = sys.stdin.isatty()
        tell(f"loading {self._where} on {device.adapter.description or device.adapter.device}")
        model = await Model.load(device, self._where, tell_download)
        try:
            if not is_terminal:
                return 0 if await self._answer(model, sys.stdin.read().strip()) else 1
            tell("Ctrl-C stops an answer, Ctrl-D leaves")
            while (prompt := read_line()) is not None:
                if prompt.strip():
                    await self._answer(model, prompt)
            return 0
        finally:
            model.unload()

    async def _answer(self, model: Model, prompt: str) -> bool:
        """Whether there was one; what hinders it is told."""
        self._messages.append({"role": "user", "content": prompt})
        cancel = CancelToken()
        text = ""
        last: Piece | None = None
        with stop_on_interrupt(cancel.cancel):
            try:
                async for last in model.chat(self._messages, cancel=cancel, **self._fields):
                    text += last.text
                    print(last.text, end="", flush=True)
            except InpageError as error:
                tell(str(error))
                self._messages.pop()
                return False
        print()
        self._messages.append({"role": "assistant", "content": text})
        if last is not None and last.usage is not None:
            tell(summary(last.usage))
        return True


def summary(usage: Usage) -> str:
    """One line about an answer: tokens, times, and what was left out."""
    facts = [
        counted(usage.completion_tokens, "token"),
        f"{usage.prompt_tokens - usage.cached_tokens} of {usage.prompt_tokens} prompt tokens read",
    ]
    if usage.time_to_first_token_s is not None:
        facts.append(f"first after {usage.time_to_first_token_s:.2f} s")
    if usage.decode_tokens_per_s is not None:
        facts.append(f"{usage.decode_tokens_per_s:.1f} tokens/s")
    return ", ".join(facts)


def read_line() -> str | None:
    """None to leave, by Ctrl-D or Ctrl-C."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)  # asyncio has its own
    try:
        return input(PROMPT)
    except (EOFError, KeyboardInterrupt):
        return None
    finally:
        signal.signal(signal.SIGINT, former)


def tell(text: str) -> None:
    """What is not the answer goes to standard error, so that a pipe gets the answer alone."""
    print(f"[{text}]", file=sys.stderr, flush=True)


def tell_download(phase: str, done: int, total: int) -> None:
    """On one line, where somebody watches; only models of the Hub are downloaded here."""
    if phase == DOWNLOAD and sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r[{in_words(done)} of {in_words(total)}] ", end=end, file=sys.stderr, flush=True)


class stop_on_interrupt:
    """While an answer is written, Ctrl-C calls back instead of raising."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    def __enter__(self) -> None:
        self._former = signal.signal(signal.SIGINT, lambda number, frame: self._callback())

    def __exit__(self, *details: object) -> None:
        signal.signal(signal.SIGINT, self._former)
