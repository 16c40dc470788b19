"""The questions an op may ask of the graph being built; builder.Builder answers them."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from py_runtime.gpu.kernel_sources import KernelSource
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.live.launch import Bindable, BufferCopy, Joined, Launch, Scratch, WeightSlice
from py_runtime.live.values import LiveInt, LiveTensor
from py_runtime.program import Program


class Caller(Protocol):
    """The op that asks."""

    @property
    def where(self) -> str: ...

    @property
    def index(self) -> int: ...


class BuildContext(Protocol):
    """The graph being built, as ops see it; the protocol keeps ops from importing the graph."""

    @property
    def program(self) -> Program: ...

    @property
    def target(self) -> KernelTarget: ...

    @property
    def limits(self) -> dict[str, int]: ...

    def tensor(self, value_id: int) -> LiveTensor: ...

    def symint(self, value_id: int) -> LiveInt: ...

    def fixed_int(self, value_id: int, value: int) -> LiveInt: ...

    def read_from_host(self, op: Any, tensor: LiveTensor) -> None: ...

    def launch(
        self,
        op: Caller,
        kernel: str | KernelSource,
        plugs: Mapping[str, str],
        bind: Mapping[str, Bindable],
        constants: Mapping[str, float],
    ) -> Launch: ...

    def copy(self, op: Caller, source: LiveTensor, destination: LiveTensor) -> BufferCopy: ...

    def scratch(self, op: Caller, label: str, nbytes: int) -> Scratch: ...

    def join(self, op: Caller, parts: Sequence[LiveTensor]) -> LiveTensor | Joined: ...

    def cut(self, op: Caller, tensor: LiveTensor, rows: int) -> list[WeightSlice]: ...

    def try_alias(self, source: LiveTensor, alias: LiveTensor) -> bool: ...

    def alias_mutated(self, source: LiveTensor, alias: LiveTensor) -> None: ...
