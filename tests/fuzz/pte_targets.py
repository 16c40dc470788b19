"""ExecuTorch's files: the program (.pte) and its data (.ptd)."""

from collections.abc import Sequence
from pathlib import Path

from py_runtime.graph.buffers import measure
from py_runtime.pte import inspect_pte, open_pte
from py_runtime.pte.about import about_pte
from tests.fuzz.damage import damage_bytes
from tests.fuzz.driver import Target
from tests.fuzz.in_line import result_of
from tests.pte.lies import SOUND, SOUND_PTD, file
from tests.pte.memory_source import MemorySource

FILES = Path(__file__).parents[1] / "pte" / "files"
LARGE = 20_000  # bytes; one in so many inputs is made of a file above that
SMALL_AS_OFTEN = 8
NOT_SOUND = ("other_backend", "external_data")  # they need more than we have


def programs() -> list[bytes]:
    files = [
        path.read_bytes() for path in sorted(FILES.glob("*.pte")) if path.stem not in NOT_SOUND
    ]
    small = [SOUND, *(data for data in files if len(data) <= LARGE)]
    return [*small * SMALL_AS_OFTEN, *(data for data in files if len(data) > LARGE)]


def read_program(data: bytes, more: Sequence[bytes] = ()) -> None:
    """Parse, translate, describe, and run every op's own checks: all but the GPU."""
    source = MemorySource(data)
    beside = [MemorySource(content, "model.ptd") for content in more]
    about_pte(result_of(inspect_pte(source, beside)), "Read.")
    program = result_of(open_pte(source, beside))
    for method in program.methods.values():
        for step in method.delegates:
            measure(step.program)
    total = len(data) + sum(map(len, more))
    assert sum(part.bytes_read for part in (source, *beside)) <= 6 * total, (
        "no byte is read again and again"
    )


def read_data(data: bytes) -> None:
    """Read a sound .pte with a .ptd that need not be."""
    read_program(file(named={}), [data])


TARGETS = [
    Target("pte", programs, damage_bytes, read_program, count=800),
    Target("ptd", lambda: [SOUND_PTD], damage_bytes, read_data, count=200),
]
