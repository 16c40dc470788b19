"""A meter that tells what was charged to it, and an environment of templates that has one."""

from collections.abc import Callable
from typing import Any, NamedTuple

from py_runtime.chat.bounds import RenderingMeter
from py_runtime.chat.environment import GuardedEnvironment


class Price(NamedTuple):
    """The charge for something: units of work, the most bytes at once, and bytes that stay."""

    work: int = 0
    room: int = 0
    made: int = 0


class TellingMeter(RenderingMeter):
    """A meter that remembers how much room it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.room = 0

    def expect(self, size: int) -> None:
        super().expect(size)
        self.room = max(self.room, size)

    @property
    def price(self) -> Price:
        return Price(self.work_done, self.room, self.bytes_made)


def price_of(check: Callable[..., Any], *args: Any, **named: Any) -> Price:
    """Return what a check that is given a meter charges to it."""
    meter = TellingMeter()
    check(meter, *args, **named)
    return meter.price


def price_in_template(check: Callable[..., Any], *args: Any, **named: Any) -> Price:
    """Return what a check that is given an environment charges to its meter."""
    environment = GuardedEnvironment()
    environment.meter = meter = TellingMeter()
    check(environment, *args, **named)
    return meter.price


def rendered(source: str, **variables: Any) -> tuple[str, TellingMeter]:
    """Return what a template writes, and the meter with what it was charged."""
    environment = GuardedEnvironment()
    template = environment.from_string(source)
    environment.meter = meter = TellingMeter()
    return template.render(**variables), meter
