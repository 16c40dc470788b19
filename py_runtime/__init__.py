"""inpage's inference runtime: plain Python and numpy, the same under CPython and in the page."""

__version__ = "0.1.0"
