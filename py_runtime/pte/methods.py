"""A .pte file, read and translated, before any GPU is touched: its methods and constants."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from py_runtime.base.errors import InputError
from py_runtime.program import Program
from py_runtime.pte.container import EValue
from py_runtime.pte.errors import PteError
from py_runtime.pte.kernels import Argument, HostKernel, LiveArgument
from py_runtime.weights.ranges import StoredRange

FORWARD = "forward"  # the method that a module has without being told


@dataclass(frozen=True)
class DelegateStep:
    """A graph to run on the GPU; its ids are the method's, in the order of the graph's own ends."""

    program: Program
    ranges: dict[str, StoredRange]  # of each constant
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class CopyStep:
    """A copy of one value into another: `aten::copy_` into an input that the model changes."""

    source: int
    destination: int


@dataclass(frozen=True)
class MoveStep:
    """A step that gives a value another name."""

    source: int
    destination: int


@dataclass(frozen=True)
class KernelStep:
    """A step whose tensors the host computes."""

    name: str
    kernel: HostKernel
    args: tuple[Argument, ...]
    destinations: tuple[int, ...]

    @property
    def taken(self) -> tuple[int, ...]:
        """Ids of what differs from call to call."""
        live = [arg for arg in self.args if isinstance(arg, LiveArgument)]
        return tuple(at for arg in live for at in arg.ids if at >= 0)


Step = DelegateStep | CopyStep | MoveStep | KernelStep


@dataclass(frozen=True)
class Method:
    """A method that can be called: host values, and the steps between them."""

    name: str
    values: tuple[EValue, ...]
    input_ids: tuple[int, ...]  # into values, in the order callers pass them
    output_ids: tuple[int, ...]
    steps: tuple[Step, ...]

    @property
    def inputs(self) -> tuple[EValue, ...]:
        return tuple(self.values[value_id] for value_id in self.input_ids)

    @property
    def outputs(self) -> tuple[EValue, ...]:
        return tuple(self.values[value_id] for value_id in self.output_ids)

    @property
    def taken_ids(self) -> set[int]:
        """The ids of the values that delegates and kernels compute with."""
        taken: set[int] = set()
        for step in self.steps:
            if isinstance(step, DelegateStep):
                taken.update(step.inputs)
            elif isinstance(step, KernelStep):
                taken.update(step.taken)
        return taken

    @property
    def delegates(self) -> tuple[DelegateStep, ...]:
        return tuple(step for step in self.steps if isinstance(step, DelegateStep))

    @property
    def delegate(self) -> DelegateStep:
        """The one graph that computes the method, where there is just one."""
        if len(self.steps) != 1 or not isinstance(self.steps[0], DelegateStep):
            raise PteError(
                f"method '{self.name}' is not computed by one graph alone",
                "run it with PteModule.run",
            )
        return self.steps[0]


# The result of a method that computes nothing.
ConstantResult = None | bool | int | float | str | list[Any] | np.ndarray


@dataclass(frozen=True)
class PteProgram:
    """The methods of a file; nothing of it is on a GPU yet."""

    name: str
    size: int  # of the file
    methods: dict[str, Method]
    constants: dict[str, ConstantResult]  # of methods that compute nothing, as get_max_seq_len
    description: dict[str, Any]

    def method(self, name: str) -> Method:
        if name not in self.methods:
            raise InputError(
                f"{self.name} has no method '{name}'; it has {', '.join(self.methods) or 'none'}"
            )
        return self.methods[name]

    def describe(self) -> dict[str, Any]:
        """Plain data: what JSON can hold."""
        return self.description
