"""The table of ops, and the base class of its rows.

An op is one class: `build` runs once, at load, and declares kernels from the maximum shapes;
`live` maps the live state of its arguments to output dims, parameters and grids. Load and every
resize call the same `live`, so nothing can be right at one and stale at the other. It looks at
nothing else: ops that were built alike are asked once (see graph/repeated_ops.py).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from py_runtime.base.dtypes import DType
from py_runtime.base.errors import GraphError, InputError
from py_runtime.gpu.kernel_sources import KernelSource
from py_runtime.live.build_context import BuildContext
from py_runtime.live.launch import Bindable, BufferCopy, Joined, Launch, Scratch, WeightSlice
from py_runtime.live.values import LiveInt, LiveTensor
from py_runtime.program import (
    BoolListValue,
    BoolValue,
    DoubleListValue,
    DoubleValue,
    IntListValue,
    IntValue,
    NullValue,
    OpCall,
    StringValue,
    SymIntValue,
    TensorValue,
    Value,
    ValueListValue,
)

KIND_NAMES: dict[type, str] = {
    TensorValue: "a tensor",
    SymIntValue: "a SymInt",
    IntValue: "an int",
    DoubleValue: "a double",
    BoolValue: "a bool",
    StringValue: "a string",
    NullValue: "null",
    IntListValue: "an int list",
    DoubleListValue: "a double list",
    BoolListValue: "a bool list",
    ValueListValue: "a value list",
}


@dataclass(frozen=True)
class OpRow:
    """A row of the table of ops: how one is called, and what must be known before it is built."""

    name: str
    args: tuple[str, ...]  # argument names in order, the output last
    optional: frozenset[str]  # those that a call by names may leave out: they are null then
    op: "type[Op]"
    mutates: frozenset[str]  # arguments whose tensor is written in place
    # The written arguments that hold a sum over all tokens so far instead of a row for each
    # position: they cannot be cut back to an earlier one.
    carries: frozenset[str]
    resizes: bool  # False: refused on a graph where its arguments can change

    def in_order(self, given: Mapping[str, int | None]) -> list[int | None]:
        """Return a call's arguments in their order; None: it is left out, which is checked."""
        unknown = [name for name in given if name not in self.args]
        missing = [
            name for name in self.args if given.get(name) is None and name not in self.optional
        ]
        if unknown or missing:
            faults = [f"has no argument '{name}'" for name in unknown]
            faults += [f"needs '{name}'" for name in missing]
            raise GraphError(
                f"op '{self.name}' {' and '.join(faults)}; it takes {', '.join(self.args)}"
            )
        return [given.get(name) for name in self.args]


REGISTRY: dict[str, OpRow] = {}


def register(
    *names: str, args: str, mutates: str = "", carries: str = "", resizes: bool = True
) -> Callable[[type["Op"]], type["Op"]]:
    """Put an op class into the table under each name; a name can be taken once only.

    `args` are its arguments in order; a question mark ends those that may be null.
    """

    def add(op: type["Op"]) -> type["Op"]:
        for name in names:
            if name in REGISTRY:
                raise GraphError(f"op '{name}' is registered twice ({op.__qualname__})")
            taken = tuple(arg.removesuffix("?") for arg in args.split())
            optional = frozenset(arg[:-1] for arg in args.split() if arg.endswith("?"))
            written, carried = frozenset(mutates.split()), frozenset(carries.split())
            REGISTRY[name] = OpRow(name, taken, optional, op, written, carried, resizes)
        return op

    return add


class Op(ABC):
    """Base class: typed access to the arguments by name, then `build` and `live`."""

    def __init__(self, builder: BuildContext, row: OpRow, call: OpCall, index: int) -> None:
        if len(call.args) != len(row.args):
            raise GraphError(
                f"op {index} ({call.name}) has {len(call.args)} arguments; it takes "
                f"{len(row.args)}: {', '.join(row.args)}"
            )
        self.name = call.name
        self.where = f"op {index} ({call.name})"
        self.index = index
        self.builder = builder
        self._ids = dict(zip(row.args, call.args, strict=True))

    # What an op file writes --------------------------------------------------------------------

    @abstractmethod
    def build(self) -> None:
        """Check the arguments and declare kernels, once, before any buffer exists."""

    @abstractmethod
    def live(self) -> None:
        """Live dims and scalars in; output dims, kernel parameters and grids out."""

    # Arguments by name -------------------------------------------------------------------------

    def has(self, arg: str) -> bool:
        """Return whether an optional argument is given; the call has null for one that is not."""
        return not isinstance(self._value(arg), NullValue)

    def takes(self, arg: str) -> bool:
        """Return whether the op has such an argument under the name it was called by."""
        return arg in self._ids

    def tensor(self, arg: str, *dtypes: DType, rank: int | None = None) -> LiveTensor:
        return self._checked_tensor(arg, self._ids[arg], dtypes, rank)

    def tensors(self, arg: str, *dtypes: DType) -> list[LiveTensor]:
        value = self._value(arg)
        if not isinstance(value, ValueListValue):
            raise self._wrong(arg, "a list of tensors")
        return [self._checked_tensor(arg, item, dtypes, None) for item in value.ids]

    def integer(self, arg: str) -> int:
        number = _whole(self._value(arg))
        if number is None:
            raise self._wrong(arg, "an int")
        return number

    def number(self, arg: str) -> float:
        value = self._value(arg)
        if isinstance(value, IntValue | DoubleValue | BoolValue):
            return float(value.value)
        raise self._wrong(arg, "a number")

    def boolean(self, arg: str) -> bool:
        number = self.number(arg)
        if number not in (0.0, 1.0):
            raise self._wrong(arg, "a bool")
        return number == 1.0

    def string(self, arg: str) -> str:
        value = self._value(arg)
        if not isinstance(value, StringValue):
            raise self._wrong(arg, "a string")
        return value.value

    def live_int(self, arg: str) -> LiveInt:
        """Return an int that may be live: a SymInt, or a fixed int."""
        if isinstance(self._value(arg), SymIntValue):
            return self.builder.symint(self._ids[arg])
        return self.builder.fixed_int(self._ids[arg], self.integer(arg))

    def symint_out(self, arg: str = "out") -> LiveInt | None:
        """Return the SymInt this op computes; None where the exporter folded it into an int."""
        value = self._value(arg)
        if isinstance(value, IntValue):
            return None
        if not isinstance(value, SymIntValue):
            raise self._wrong(arg, "a SymInt")
        return self.builder.symint(self._ids[arg])

    def int_list(self, arg: str) -> list[int]:
        value = self._value(arg)
        if isinstance(value, IntListValue):
            return list(value.values)
        if isinstance(value, ValueListValue):
            entries = self.live_ints(arg)
            if any(entry.is_symint for entry in entries):
                raise self._wrong(arg, "a list of fixed ints")
            return [entry.value for entry in entries]
        return [self.integer(arg)]

    def live_ints(self, arg: str) -> list[LiveInt]:
        """Return the entries of an int list, or of a list of ints and SymInts; each may be live."""
        value = self._value(arg)
        if isinstance(value, IntListValue):
            return [self.builder.fixed_int(self._ids[arg], item) for item in value.values]
        if not isinstance(value, ValueListValue):
            raise self._wrong(arg, "a list of ints and SymInts")
        entries = []
        for item in value.ids:
            entry = self.builder.program.values[item]
            if isinstance(entry, SymIntValue):
                entries.append(self.builder.symint(item))
            elif (number := _whole(entry)) is not None:
                entries.append(self.builder.fixed_int(item, number))
            else:
                raise self._wrong(arg, "a list of ints and SymInts")
        return entries

    def _value(self, arg: str) -> Value:
        return self.builder.program.values[self._ids[arg]]

    def _checked_tensor(
        self, arg: str, value_id: int, dtypes: Sequence[DType], rank: int | None
    ) -> LiveTensor:
        value = self.builder.program.values[value_id]
        if not isinstance(value, TensorValue):
            raise self._wrong(arg, "a tensor", value)
        tensor = self.builder.tensor(value_id)
        if dtypes and tensor.dtype not in dtypes:
            wanted = " or ".join(dtype.name for dtype in dtypes)
            raise GraphError(
                f"{self.where}: argument '{arg}' ({tensor.label}) is {tensor.dtype.name}; it must "
                f"be {wanted}"
            )
        if rank is not None and tensor.rank != rank:
            raise GraphError(
                f"{self.where}: argument '{arg}' ({tensor.label}) has rank {tensor.rank}; it must "
                f"be {rank}"
            )
        return tensor

    def _wrong(self, arg: str, wanted: str, value: Value | None = None) -> GraphError:
        kind = KIND_NAMES[type(value or self._value(arg))]
        return GraphError(
            f"{self.where}: argument '{arg}' (value {self._ids[arg]}) is {kind}; it must be "
            f"{wanted}"
        )

    # Checks ------------------------------------------------------------------------------------

    def require(self, holds: bool, text: str) -> None:
        """Raise GraphError at load unless a condition on the graph itself holds."""
        if not holds:
            raise GraphError(f"{self.where}: {text}")

    def require_live(self, holds: bool, text: str) -> None:
        """Raise InputError in a call unless a condition on the live state holds."""
        if not holds:
            raise InputError(f"{self.where}: {text}")

    # Declarations for build --------------------------------------------------------------------

    def launch(
        self,
        kernel: str | KernelSource,
        *,
        bind: Mapping[str, Bindable],
        plugs: Mapping[str, str] | None = None,
        constants: Mapping[str, float] | None = None,
    ) -> Launch:
        """Declare a kernel of this op: a WGSL file or source, and its bindings by WGSL names.

        `plugs` says which fragment goes into each slot that the file, or one it needs, has.
        """
        return self.builder.launch(self, kernel, plugs or {}, bind, constants or {})

    def copy(self, source: LiveTensor, destination: LiveTensor) -> BufferCopy:
        return self.builder.copy(self, source, destination)

    def scratch(self, label: str, nbytes: int) -> Scratch:
        """GPU memory that this op alone uses while it runs; ops share it one after the other."""
        return self.builder.scratch(self, label, nbytes)

    def join(self, parts: Sequence[LiveTensor]) -> LiveTensor | Joined:
        """Constants as one binding, one after the other; a single one is itself."""
        return self.builder.join(self, parts)

    def cut(self, tensor: LiveTensor, rows: int) -> list[WeightSlice]:
        """Cut a constant into several bindings of so many rows each; the last may have fewer."""
        return self.builder.cut(self, tensor, rows)

    def try_alias(self, source: LiveTensor, alias: LiveTensor) -> bool:
        """Lets `alias` be the same bytes as `source`; refused when some op writes those bytes."""
        return self.builder.try_alias(source, alias)


def _whole(value: Value) -> int | None:
    """Return a value as an int, or None where it is not a whole number.

    Exporters store equal numbers once, so 0 may arrive as 0.0 or False.
    """
    if isinstance(value, IntValue | BoolValue):
        return int(value.value)
    if isinstance(value, DoubleValue) and value.value.is_integer():
        return int(value.value)
    return None


class HostReadOp(Op):
    """An op whose result comes from an input's host array, before anything is resized."""

    @abstractmethod
    def read_host(self, array: np.ndarray) -> None: ...
