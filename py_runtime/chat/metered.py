"""jinja2's sandbox with a meter, to which filters and tests charge what they do."""

import sys
from collections.abc import Iterator
from typing import Any

from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from py_runtime.chat.bounds import RenderingMeter, counted
from py_runtime.chat.costs import check_integer


class MeteredEnvironment(ImmutableSandboxedEnvironment):
    """A sandbox whose meter is that of the rendering under way."""

    meter: RenderingMeter

    def charged(self, value: Any) -> Any:
        """Charge for a value that has been made, without what it refers to."""
        if isinstance(value, Iterator):
            return value if isinstance(value, LoopContext) else counted(value, self.meter)
        if isinstance(value, int):
            check_integer(value)
        self.meter.make(sys.getsizeof(value))
        return value
