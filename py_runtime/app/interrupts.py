"""The page's interrupt: a KeyboardInterrupt in code that does not return, and nowhere else.

It comes as a signal, at any instruction. So it is let through only where code that others wrote
decides how long something takes: users' Python, chat templates, tokenizers, grammars and program
files. The engine's own bookkeeping always comes to its end and is never torn: there the signal is
passed over, and the page, which sends it again and again until it is answered, meets it later.
"""

import signal
from collections.abc import Callable, Container
from contextvars import ContextVar
from types import FrameType

OPEN_PACKAGES = frozenset({"chat", "grammar", "notebook", "passes", "program", "pte", "tokens"})
PRINTING = "py_runtime.notebook.printed"  # on behalf of whoever prints
USERS_MODULE = "__inpage__"  # `__name__` in the namespace of users' Python
ANY_CALL = 0  # what the page wants to interrupt, if not a call of this number
NO_CALL = -1  # nothing: the code that it meant has ended

# The call on whose behalf Python runs; what it started in the background keeps its number.
in_call: ContextVar[int] = ContextVar("in_call", default=NO_CALL)


def listen(wanted: Callable[[], int], running: Container[int]) -> None:
    """Handle interrupts; `wanted` gives the call that is meant, `running` holds open calls."""

    def arrived(number: int, frame: FrameType | None) -> None:
        call, meant = in_call.get(), wanted()
        is_meant = meant in (ANY_CALL, call) or call not in running
        if NO_CALL not in (call, meant) and is_meant and _is_open(frame):
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, arrived)


def _is_open(frame: FrameType | None) -> bool:
    """Return whether the innermost code, ours or the user's, may be broken off."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if module == USERS_MODULE:
            return True
        if module.startswith("py_runtime.") and module != PRINTING:
            return module.split(".")[1] in OPEN_PACKAGES
        frame = frame.f_back
    return False
