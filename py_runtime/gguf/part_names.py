"""Names of GGUF files: of whole ones, and of the parts of one."""

import re

PART_NAME = re.compile(r"(?P<model>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.IGNORECASE)
MAX_PARTS = 65_535  # what the metadata's 16 bits can count


def parts_of(name: str) -> list[str]:
    """The names of all parts, where this is the name of one; else it alone."""
    match = PART_NAME.fullmatch(name)
    count = int(match["count"]) if match else 1
    if match is None or not 1 <= count <= MAX_PARTS:
        return [name]
    return [f"{match['model']}-{n:05}-of-{match['count']}.gguf" for n in range(1, count + 1)]


def model_name(name: str) -> str:
    """A file's name without its ending, and without the number of a part."""
    match = PART_NAME.fullmatch(name)
    return match["model"] if match else re.sub(r"\.gguf$", "", name, flags=re.IGNORECASE)
