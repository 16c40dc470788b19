"""Numbers as people read them."""


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
