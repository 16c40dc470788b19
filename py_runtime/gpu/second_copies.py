"""A fragment that a kernel has twice, each time with other plugs: WGSL has no generic functions.

The copy includes the fragment, those of its needs that have one of its slots, and what plugs into
them. Names that copies declare end in `_second`, as do the names of their slots.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from py_runtime.gpu.shader_sources import NEEDS, Library, ShaderFile, parse

SECOND = "_second"


def with_second_copies(library: Library, kernel: ShaderFile, plugs: Mapping[str, str]) -> Library:
    """Return the library with the files that the kernel has twice.

    A missing plug is reported by the name of its slot.
    """
    if not kernel.seconds:
        return library
    own = {slot: plug for slot, plug in plugs.items() if slot.endswith(SECOND)}
    return _with_copies(library, kernel.seconds, tuple(sorted(own.items())))


@cache
def _with_copies(
    library: Library, fragments: tuple[str, ...], plugs: tuple[tuple[str, str], ...]
) -> Library:
    files = dict(library.files)
    for name in fragments:
        fragment = library.file(name)
        asking = _with_its_slots(library, fragment, fragment)
        copied = [*asking, *_plugged(library, fragment, dict(plugs))]
        words = "|".join(sorted(word for file in copied for word in file.declares))
        for file in copied:
            code = re.sub(rf"\b({words})\b", rf"\1{SECOND}", file.source)
            entries = _entries(file, fragment, [other.name for other in copied])
            line = f"// needs: {', '.join(entries) or 'nothing'}"
            files[copy_of(file.name)] = parse(copy_of(file.name), NEEDS.sub(line, code))
    return Library(files)


def copy_of(name: str) -> str:
    """Return the name of a file's copy."""
    return f"second {name}"


def _with_its_slots(
    library: Library, fragment: ShaderFile, file: ShaderFile
) -> Iterator[ShaderFile]:
    """Return those files, of a file and all its needs, that have slots of the fragment."""
    for need in file.needs:
        yield from _with_its_slots(library, fragment, library.file(need))
    if file.slots.keys() & fragment.slots.keys():
        yield file


def _plugged(
    library: Library, fragment: ShaderFile, plugs: Mapping[str, str]
) -> Iterator[ShaderFile]:
    for slot, start in fragment.slots.items():
        if (name := start + plugs.get(slot + SECOND, "")) in library.files:
            yield library.files[name]


def _entries(file: ShaderFile, fragment: ShaderFile, copied: list[str]) -> Iterator[str]:
    """Yield the entries of the copy's `needs` line."""
    for need in file.needs:
        yield copy_of(need) if need in copied else need
    for slot, start in file.slots.items():
        yield f"{slot + SECOND if slot in fragment.slots else slot} = {start}*"
    for name in file.given:
        yield f"@{name}"
