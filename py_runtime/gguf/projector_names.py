"""The mmproj file among others that belongs to a model, by their names."""

import re
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

PREFIX = "mmproj"
LABEL = re.compile(
    r"(?<![A-Z0-9])(?:UD-)?"
    r"(?:I?Q[1-9](?:_(?:[0-8]|K|S|M|L|XL|XS|XXS|NL))*|TQ[12]_0|BF16|F16|F32|MXFP4(?:_MOE)?)"
    r"(?![A-Z0-9])"
)
PREFERRED = ("Q8_0", "F16", "BF16", "F32")  # of several; a small loss is seldom seen
SEPARATORS = "-_. "


def is_projector(name: str) -> bool:
    """Return whether a file's name says that it is the part of a model that sees."""
    return name.rpartition("/")[2].lower().startswith(PREFIX)


class Named(Protocol):
    """A thing that has the name of a file."""

    @property
    def name(self) -> str: ...


File = TypeVar("File", bound=Named)


def apart(files: Sequence[File]) -> tuple[list[File], File | None]:
    """Return a model's parts, and its mmproj file where it is among them.

    Where there is nothing else, or more than one, they are taken for parts, and refused later.
    """
    projectors = [file for file in files if is_projector(file.name)]
    parts = [file for file in files if not is_projector(file.name)]
    if not parts or len(projectors) != 1:
        return list(files), None
    return parts, projectors[0]


def label_of(name: str) -> str:
    """Return what a file's name says of its quantisation; nothing if it says nothing."""
    found = LABEL.findall(name.upper())
    return found[-1] if found else ""


def projector_for(model: str, names: Iterable[str], is_alone: bool = False) -> str | None:
    """Return the mmproj file for the model in the file `model`, or None.

    Its name has the model's behind the prefix; where the model `is_alone` among its files, it may
    have nothing.
    """
    own = _base(model)
    found = [name for name in names if is_projector(name)]
    named = [name for name in found if _base(name[len(PREFIX) :]) == own]
    nameless = [name for name in found if not _base(name[len(PREFIX) :])]
    candidates = named or (nameless if is_alone else [])
    order = {label: place for place, label in enumerate(PREFERRED)}
    return min(candidates, key=lambda name: (order.get(label_of(name), 9), name), default=None)


def _base(name: str) -> str:
    """Return a name without its ending and its quantisation, in small letters."""
    whole = re.sub(r"(-\d{5}-of-\d{5})?\.gguf$", "", name, flags=re.IGNORECASE).upper()
    return LABEL.sub("", whole).strip(SEPARATORS).lower()
