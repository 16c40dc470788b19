"""A loaded .pte file: its methods take and give what they did in the model that was exported."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from py_runtime.base.errors import InputError
from py_runtime.graph import Graph
from py_runtime.live.host_arrays import as_array, as_int, check_int32
from py_runtime.pte.container import EValue, HostTensor
from py_runtime.pte.kernels import Argument, LiveArgument
from py_runtime.pte.methods import (
    FORWARD,
    ConstantResult,
    CopyStep,
    DelegateStep,
    KernelStep,
    Method,
    PteProgram,
)


class PteModule:
    """A loaded module: `await load(...)`, then `await module.run(inputs)` as often as you like."""

    def __init__(self, program: PteProgram, graphs: dict[str, tuple[Graph, ...]]) -> None:
        self.program = program
        self.graphs = graphs  # of each loaded method, one for each of its delegates

    @property
    def methods(self) -> list[str]:
        return list(self.graphs)

    @property
    def constants(self) -> dict[str, ConstantResult]:
        return self.program.constants

    def describe(self) -> dict[str, Any]:
        return self.program.describe()

    async def run(self, inputs: Sequence[Any], method: str = FORWARD) -> list[Any]:
        """Run a method and return its outputs, in its own order.

        A model that changes an input writes into the caller's array, where that is a numpy array of
        the right dtype that can be written; the output has the new content in any case.
        """
        found = self.program.method(method)
        if method not in self.graphs:
            loaded = ", ".join(self.graphs) or "none"
            raise InputError(f"method '{method}' was not loaded; loaded are: {loaded}")
        values = _Values(found, inputs)
        graphs = iter(self.graphs[method])
        for step in found.steps:
            if isinstance(step, DelegateStep):
                results = await next(graphs).run(values.for_graph(step.inputs))
                values.take_results(step.outputs, results)
            elif isinstance(step, KernelStep):
                values.compute(step)
            elif isinstance(step, CopyStep):
                values.copy(step.source, step.destination)
            else:
                values.current[step.destination] = values.current[step.source]
        return [values.current[value_id] for value_id in found.output_ids]

    def unload(self) -> None:
        """Free all GPU memory; nothing can be run afterwards."""
        for graphs in self.graphs.values():
            for graph in graphs:
                graph.unload()


class _Values:
    """The values of a call, on the host."""

    def __init__(self, method: Method, inputs: Sequence[Any]) -> None:
        if not isinstance(inputs, list | tuple):  # an array has a length as well
            raise InputError(
                f"method '{method.name}' takes a list of its inputs, got {type(inputs).__name__}"
            )
        if len(inputs) != len(method.input_ids):
            raise InputError(
                f"method '{method.name}' takes {len(method.input_ids)} inputs, got {len(inputs)}"
            )
        self._method = method
        self.current: dict[int, Any] = {
            value_id: value
            for value_id, value in enumerate(method.values)
            if value is None or isinstance(value, bool | int | float | str)
        }
        live = method.taken_ids
        for index, (value_id, given) in enumerate(zip(method.input_ids, inputs, strict=True)):
            spec = method.values[value_id]
            self.current[value_id] = _as_input(index, spec, given, is_live=value_id in live)

    def for_graph(self, ids: Sequence[int]) -> list[Any]:
        return [self._narrowed(self.current[value_id]) for value_id in ids]

    def take_results(self, ids: Sequence[int], results: Sequence[np.ndarray]) -> None:
        for value_id, result in zip(ids, results, strict=True):
            spec = self._method.values[value_id]
            if isinstance(spec, HostTensor):
                self.current[value_id] = result.astype(spec.dtype, copy=False)
            else:
                self.current[value_id] = int(result)

    def compute(self, step: KernelStep) -> None:
        dtypes = [spec.dtype for spec in self._specs(step.destinations)]
        args = [self._argument(arg) for arg in step.args]
        try:
            with np.errstate(all="ignore"):  # as on the GPU: infinities are numbers
                found = step.kernel.compute(dtypes[0], *args)
        except (ValueError, IndexError, TypeError) as error:  # of places, live dims, dtypes
            raise InputError(f"method '{self._method.name}', {step.name}: {error}") from None
        results = found if isinstance(found, tuple) else (found,)
        for destination, dtype, result in zip(step.destinations, dtypes, results, strict=True):
            self.current[destination] = result.astype(dtype, copy=False)

    def _specs(self, ids: Sequence[int]) -> list[HostTensor]:
        found = [self._method.values[value_id] for value_id in ids]
        return [spec for spec in found if isinstance(spec, HostTensor)]

    def _argument(self, arg: Argument) -> Any:
        if not isinstance(arg, LiveArgument):
            return arg
        values = [self.current[value_id] if value_id >= 0 else None for value_id in arg.ids]
        return values if arg.is_list else values[0]

    def copy(self, source: int, destination: int) -> None:
        content, array = self.current[source], self.current[destination]
        if content.shape != array.shape:
            raise InputError(
                f"method '{self._method.name}' writes {list(content.shape)} into an input of the "
                f"shape {list(array.shape)}"
            )
        array = array if array.flags.writeable else array.copy()
        array[...] = content
        self.current[destination] = array

    @staticmethod
    def _narrowed(value: Any) -> Any:
        is_double = isinstance(value, np.ndarray) and value.dtype == np.float64
        return value.astype(np.float32) if is_double else value


def _as_input(index: int, spec: EValue, given: Any, is_live: bool) -> Any:
    """Return an input as a step takes it; `is_live` says that a delegate or a kernel does.

    A graph would refuse it as well, but by the delegate's number for it, not the caller's.
    """
    if isinstance(spec, HostTensor):
        array = as_array(index, given)
        # Integers of any width are taken: numpy's own differs in the page.
        if spec.dtype.kind == "i" and array.dtype.kind in "iu":
            if is_live:
                check_int32(f"input {index}", array)
            array = _as_integers(index, spec.dtype, array)
        if array.dtype != spec.dtype:
            raise InputError(f"input {index} takes {spec.dtype}, got {array.dtype}")
        _check_dims(index, spec, array.shape)
        return array
    if is_live:
        number = as_int(index, given)
        check_int32(f"input {index}", np.asarray(number))
        return number
    if type(given) is not type(spec) or given != spec:
        raise InputError(f"input {index} was fixed at {spec!r} by the export, got {given!r}")
    return given


def _as_integers(index: int, dtype: np.dtype, array: np.ndarray) -> np.ndarray:
    """Convert to the model's own integers; nothing wraps silently."""
    info = np.iinfo(dtype)
    for number in (int(array.min()), int(array.max())) if array.size else ():
        if not info.min <= number <= info.max:
            raise InputError(
                f"input {index} holds {number}, which does not fit the model's {dtype}"
            )
    return array.astype(dtype, copy=False)


def _check_dims(index: int, spec: HostTensor, dims: tuple[int, ...]) -> None:
    if spec.dynamic and len(dims) == len(spec.dims):
        fits = all(size <= most for size, most in zip(dims, spec.dims, strict=True))
    else:
        fits = dims == spec.dims
    if not fits:
        bound = " at most" if spec.dynamic else ""
        raise InputError(f"input {index} takes{bound} {list(spec.dims)}, got {list(dims)}")
