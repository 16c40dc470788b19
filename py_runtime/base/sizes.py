"""Numbers as people read them, and as strangers write them."""

import math

MAX_DIGITS = 18  # of a number that a stranger tells: longer ones mean nothing, and take long


def parse_count(text: str) -> int | None:
    """Return the number that a text of plain digits is; None if it is anything else."""
    is_count = len(text) <= MAX_DIGITS and text.isascii() and text.isdecimal()
    return int(text) if is_count else None


def in_words(nbytes: int) -> str:
    """Return a size such as '1.2 MB' for 1,234,567."""
    size, unit = float(nbytes), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"


def counted(count: int, what: str) -> str:
    """Return a count with its noun, such as "1 token" and "2 tokens"."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def millions(count: int) -> str:
    """Return a count in millions, such as '134.5' for 134,515,008."""
    return f"{count / 1e6:.1f}"


def duration(seconds: float) -> str:
    """Return a time as rough as people want it: '45 s', '3 min', '1.5 h'."""
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def percent(share: float) -> str:
    """Return a share with two significant digits: '0.00040 %', '3.1 %'."""
    if not math.isfinite(share):
        return "more than any number (it is NaN or infinite)"
    if share == 0:
        return "0 %"
    digits = max(0, 1 - math.floor(math.log10(share * 100)))
    return f"{share * 100:.{digits}f} %"
