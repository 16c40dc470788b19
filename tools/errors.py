"""Errors that people read in one line."""

import sys
from collections.abc import Callable


class UserError(Exception):
    """An error that says what went wrong, where, and what to do; a traceback would add nothing."""


def exit_status(work: Callable[[], None]) -> int:
    """Run `work` for a command line: 0, or 1 after one line that says what went wrong."""
    try:
        work()
    except (UserError, OSError) as error:  # a folder that cannot be written, a full disk
        print(f"inpage: {error}", file=sys.stderr)
        return 1
    return 0
