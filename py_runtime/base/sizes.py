"""Numbers in words."""


def in_words(nbytes: int) -> str:
    """1,234,567 is '1.2 MB'."""
    size, unit = float(nbytes), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"


def counted(count: int, what: str) -> str:
    """Such as "1 token" and "2 tokens"."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
