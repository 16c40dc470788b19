"""The choice of a byte source: a file on the disk, or an address of the page's site."""

from pathlib import Path

from py_runtime.base.platform import IN_PAGE
from py_runtime.weights.byte_source import ByteSource, FileSource


def open_source(where: str | Path) -> ByteSource:
    """Open a file by its path; in the page a text is an address, perhaps relative to the site."""
    if IN_PAGE and isinstance(where, str):
        from py_runtime.weights.page_source import UrlSource, url_of

        return UrlSource(url_of(where))
    return FileSource(where)
