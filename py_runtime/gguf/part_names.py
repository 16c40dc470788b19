"""Names of GGUF files: of whole ones, and of the parts of one."""

import re
from collections.abc import Iterator

PART_NAME = re.compile(
    r"(?P<model>.+)-(?P<number>[0-9]{5})(?P<ending>-of-(?P<count>[0-9]{5})\.gguf)", re.IGNORECASE
)
MAX_PARTS = 65_535  # what the metadata's 16 bits can count


def parts_of(name: str) -> Iterator[str]:
    """Yield the names of all parts in order if this is the name of one, else the name alone.

    They are made one by one: a name may claim thousands of parts that are not there, and whoever
    looks for them stops at the first that is missing.
    """
    match = PART_NAME.fullmatch(name)
    count = int(match["count"]) if match else 1
    if match is None or not 1 <= count <= MAX_PARTS:
        yield name
        return
    for number in range(1, count + 1):
        yield f"{match['model']}-{number:05}{match['ending']}"


def is_first_part(name: str) -> bool:
    """Return whether this is the first part of a file, or a whole file."""
    return next(parts_of(name)) == name


def model_name(name: str) -> str:
    """Return a file's name without its ending, and without the number of a part."""
    match = PART_NAME.fullmatch(name)
    return match["model"] if match else re.sub(r"\.gguf$", "", name, flags=re.IGNORECASE)
