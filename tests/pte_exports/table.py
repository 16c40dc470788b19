"""Worst differences, from the tests to the end of the run's output."""

from typing import Protocol

TABLE = "difference from torch"  # the property's name; [case, runner, calls, at most, worst]


class Record(Protocol):
    """pytest's fixture `record_property`."""

    def __call__(self, name: str, value: object) -> None: ...
