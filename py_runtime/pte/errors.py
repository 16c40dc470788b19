"""Errors of a .pte or .ptd file."""

from collections.abc import Iterable, Sequence

from py_runtime.base.errors import GraphError
from py_runtime.base.short_texts import first_of

DAMAGED = "copy or download the file again, or export it again"
MAX_NAMES = 50  # that are listed
MAX_NAME = 200  # characters of one


def first_names(names: Sequence[str]) -> list[str]:
    """Shorten names to what a person reads, and say how many more there are."""
    return first_of([name[:MAX_NAME] for name in names], MAX_NAMES)


class PteError(GraphError):
    """An error of a file that cannot be read; the text names the file, the fault and what to do."""

    code = "pte_error"

    def __init__(self, fault: str, advice: str = DAMAGED) -> None:
        super().__init__(f"{fault}; {advice}")


class UnsupportedPteError(PteError):
    """An error of a sound file that needs what this engine does not have, all of it named."""

    code = "pte_unsupported"

    def __init__(self, file: str, names: Iterable[str], advice: str) -> None:
        self.names = first_names(sorted(set(names)))
        super().__init__(
            f"{file} needs what this engine does not have: {', '.join(self.names)}", advice
        )

    def facts(self) -> dict[str, object]:
        return {"names": self.names}
