"""A chat in a terminal: prompts from standard input, answers streamed to standard output."""

import contextlib
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from py_runtime.app.answer_outcome import outcome
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import InpageError
from py_runtime.base.messages import worded
from py_runtime.base.printing import print_plainly, printable
from py_runtime.base.progress import DOWNLOAD, UPLOAD
from py_runtime.base.sizes import in_words
from py_runtime.generation.pieces import Piece
from py_runtime.gpu import Device
from py_runtime.model import Model, load_model, writer
from py_runtime.model.verify import adapter_name

PROMPT = "> "
COMMAND = re.compile(r"/[a-z]+")
SHOWING = "/image"  # followed by a path
LEAVING = ("/quit", "/exit")
HELP = """\
/help    this list
/new     begin another chat; the system prompt stays
/image PATH   show the model an image along with your next message
/quit    leave, as Ctrl-D does
Ctrl-C stops an answer and keeps what is there of it. The arrow keys bring back what you asked.
What you type while an answer is written waits for the next prompt."""


class TerminalChat:
    """A chat: Ctrl-C stops an answer and keeps it, Ctrl-D leaves. A pipe is one prompt."""

    def __init__(
        self,
        where: str,
        system: str | None,
        fields: dict[str, Any],
        adapters: Sequence[tuple[str, float]] = (),
        kv: str | None = None,
        draft: str | None = None,
    ) -> None:
        self._where = where
        self._adapters = adapters  # paths, and their strengths
        self._kv = kv  # the type of caches
        self._draft = draft  # the place of a model that proposes tokens
        # Thoughts are shown as they come.
        shown = {"context_overflow": "slide", "reasoning_format": "none"}
        self._fields = {**fields, **shown}
        self._system = [{"role": "system", "content": system}] if system else []
        self._messages: list[dict[str, Any]] = list(self._system)
        self._images: list[dict[str, Any]] = []  # parts of the next message
        self._status = StatusLine()

    async def run(self, device: Device) -> int:
        tell(f"loading {self._where} on {adapter_name(device)}")
        show = self._status.show_load
        model = writer(await load_model(device, self._where, show, kv=self._kv, draft=self._draft))
        self._status.clear()
        if model.caches.said is not None:
            tell(worded(model.caches.said))
        try:
            for where, strength in self._adapters:
                await model.adapters.load(where, strength)
            if not sys.stdin.isatty():
                return 0 if await self._answer(model, sys.stdin.read().strip()) else 1
            tell("/help tells what can be typed; Ctrl-C stops an answer, Ctrl-D leaves")
            while (line := read_line()) is not None and line.strip() not in LEAVING:
                if line.split()[:1] == [SHOWING]:
                    self._show(model, line.strip().removeprefix(SHOWING).strip())
                elif COMMAND.fullmatch(line.strip()):
                    self._obey(line.strip())
                elif line.strip():
                    with keyboard_held():
                        await self._answer(model, line)
            return 0
        finally:
            model.unload()

    def _show(self, model: Model, path: str) -> None:
        """Have an image go along with the next message."""
        part = {"type": "image", "image": path.strip("'\"")}
        try:
            tokens = model.image_tokens(part) if path else None
        except InpageError as error:
            tell(str(error))
            return
        if tokens is None:
            tell(f"{SHOWING} needs the path of a PNG, JPEG, WebP or GIF file")
            return
        self._images.append(part)
        tell(f"goes along with your next message: {tokens} tokens")

    def _obey(self, command: str) -> None:
        if command == "/help":
            print(HELP)
        elif command == "/new":
            self._messages = list(self._system)
            self._images = []
            tell("another chat")
        else:
            tell(f"{command} is not a command; /help lists those there are")

    async def _answer(self, model: Model, prompt: str) -> bool:
        """Answer a prompt and return whether that worked; an error is told."""
        content = [*self._images, {"type": "text", "text": prompt}] if self._images else prompt
        self._messages.append({"role": "user", "content": content})
        cancel = CancelToken()
        text = ""
        last: Piece | None = None
        started = time.perf_counter()
        self._status.show("reading")
        pieces = model.chat(
            self._messages, cancel=cancel, on_prefill=self._status.show_reading, **self._fields
        )
        with stop_on_interrupt(cancel.cancel):
            try:
                async for last in pieces:
                    self._status.clear()
                    text += last.text
                    print_plainly(last.text, end="")
            except InpageError as error:
                self._status.clear()
                tell(str(error))
                self._messages.pop()
                return False
        self._images = []
        print()
        self._messages.append({"role": "assistant", "content": text})
        if last is not None and last.usage is not None:
            tell(worded(outcome(last, time.perf_counter() - started)))
        return True


class StatusLine:
    """A line of standard error that is overwritten with the progress, if it is a terminal."""

    def __init__(self) -> None:
        self._is_watched = sys.stderr.isatty()
        self._is_shown = False

    def show(self, text: str) -> None:
        self._write(f"[{text}]")

    def show_load(self, phase: str, done: int, total: int) -> None:
        """Show the phases of a load that count bytes: the others are short."""
        if phase in (DOWNLOAD, UPLOAD):
            self.show(f"{phase}: {in_words(done)} of {in_words(total)}")

    def show_reading(self, done: int, total: int) -> None:
        self.show(f"reading: {done} of {total} tokens")

    def clear(self) -> None:
        if self._is_shown:
            self._write("")

    def _write(self, text: str) -> None:
        if self._is_watched:
            print(f"\r\x1b[K{printable(text)}", end="", file=sys.stderr, flush=True)
            self._is_shown = bool(text)


def read_line() -> str | None:
    """Return a line, or None to leave, by Ctrl-D or Ctrl-C."""
    with contextlib.suppress(ImportError):  # not everywhere
        import readline  # noqa: F401  gives input() its arrow keys

    former = signal.signal(signal.SIGINT, signal.default_int_handler)  # asyncio has its own
    try:
        return input(PROMPT)
    except (EOFError, KeyboardInterrupt):
        return None
    finally:
        signal.signal(signal.SIGINT, former)


@contextlib.contextmanager
def keyboard_held() -> Iterator[None]:
    """Hide what is typed meanwhile: it stays in the terminal's queue for read_line()."""
    try:
        import termios
    except ImportError:  # no such terminals
        yield
        return
    former = termios.tcgetattr(sys.stdin)
    flags, held = 3, list(former)
    held[flags] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, held)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, former)


def tell(text: str) -> None:
    """Print to standard error, so that a pipe gets the answer alone."""
    print_plainly(f"[{text}]", file=sys.stderr)


class stop_on_interrupt:
    """A context in which Ctrl-C calls back instead of raising."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    def __enter__(self) -> None:
        self._former = signal.signal(signal.SIGINT, lambda number, frame: self._callback())

    def __exit__(self, *details: object) -> None:
        signal.signal(signal.SIGINT, self._former)
