"""A stand-in for the package markupsafe, which jinja2 imports, where there is none: in the page.

Its build for Pyodide is on one CDN only. A chat template is plain text and never escaped, so all
jinja2 needs of it are names; whatever would make HTML says so instead.
"""

import importlib.util
import string
import sys
from typing import Any

REFUSAL = "a chat template is plain text: there is no HTML to escape"


class Markup(str):
    """Text that counts as HTML; there is none."""

    def __new__(cls, *args: Any) -> "Markup":
        raise TypeError(REFUSAL)


class EscapeFormatter(string.Formatter):
    """The base class of the formatter for Markup in jinja2's sandbox."""


def escape(value: Any) -> str:
    """jinja2 imports it; calling it is a TypeError."""
    raise TypeError(REFUSAL)


def soft_str(value: Any) -> str:
    """Return a str as the very object it was, and anything else as text."""
    return value if isinstance(value, str) else str(value)


def stand_in_where_missing() -> None:
    """Register the stand-in before jinja2 is imported, unless the real package is there."""
    if "markupsafe" not in sys.modules and importlib.util.find_spec("markupsafe") is None:
        sys.modules["markupsafe"] = sys.modules[__name__]
