"""The reader of .pte files: it reads the small parts, checks everything, translates each method."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from py_runtime.base.errors import GraphError
from py_runtime.base.shapes import numel
from py_runtime.base.sizes import in_words
from py_runtime.graph.load_checks import check_ops
from py_runtime.ops.registry import REGISTRY
from py_runtime.program import check_program
from py_runtime.pte.container import (
    HEADER_BYTES,
    DelegateCall,
    EValue,
    ExecutionPlan,
    HostTensor,
    KernelCall,
    MoveCall,
    Segment,
    read_container,
    read_header,
)
from py_runtime.pte.delegate import HEADER, DelegateGraph, read_delegate_header, read_graph
from py_runtime.pte.errors import PteError, UnsupportedPteError, first_names
from py_runtime.pte.flatbuffer import Budget
from py_runtime.pte.host_kernels import HOST_KERNELS
from py_runtime.pte.inspection import COPY, describe_method
from py_runtime.pte.methods import (
    ConstantResult,
    CopyStep,
    DelegateStep,
    KernelStep,
    Method,
    MoveStep,
    PteProgram,
    Step,
)
from py_runtime.pte.tensor_data import read_tensor_data
from py_runtime.pte.translate import StoredData, translate
from py_runtime.weights.byte_source import ByteSource
from py_runtime.weights.ranges import StoredRange

BACKEND = "VulkanBackend"
MAX_CONSTANT_BYTES = 1 << 20  # of a tensor that a method without inputs gives


async def open_pte(source: ByteSource, data: Sequence[ByteSource] = ()) -> PteProgram:
    """Read and translate every method; what cannot run is refused here, all of it by name.

    `data` are .ptd files. Weights stay where they are: the steps of a method say which bytes.
    """
    return await _Opener(source, data).open()


async def inspect_pte(source: ByteSource, data: Sequence[ByteSource] = ()) -> dict[str, Any]:
    """Describe any sound file as PteProgram.describe() does.

    "unsupported" are the names that open_pte would refuse.
    """
    opener = _Opener(source, data)
    await opener.read()
    return opener.describe()


class _Opener:
    def __init__(self, source: ByteSource, data: Sequence[ByteSource]) -> None:
        self._source = source
        self._file = source.name
        self._data = data
        self._plans: list[ExecutionPlan] = []  # methods that compute something
        self._constants: dict[str, ConstantResult] = {}  # what the others give
        self._graphs: dict[Segment, DelegateGraph] = {}  # methods may share a delegate

    async def open(self) -> PteProgram:
        await self.read()
        if unsupported := self._unsupported():
            raise UnsupportedPteError(
                self._file,
                unsupported,
                f"export the model without them, and all of it for {BACKEND}",
            )
        stored = await self._stored_data()
        methods = {plan.name: self._method(plan, stored) for plan in self._plans}
        return PteProgram(self._file, self._size, methods, self._constants, self.describe())

    async def read(self) -> None:
        """Read all but the weights."""
        self._size = await self._source.size()
        head = await self._source.read(0, min(self._size, HEADER_BYTES))
        header = read_header(self._file, head, self._size)
        self._budget = Budget(self._file, self._size)
        program = await self._read(Segment(0, header.program_size))
        self._container = read_container(self._file, program, header, self._size, self._budget)
        for plan in self._container.plans:
            if plan.inputs or plan.instructions:
                self._plans.append(plan)
                await self._read_graphs(plan)
            else:
                self._constants[plan.name] = await self._constant(plan)

    def describe(self) -> dict[str, Any]:
        return {
            "name": self._file,
            "size": self._size,
            "methods": {plan.name: describe_method(plan, self._graphs) for plan in self._plans},
            "constants": {
                name: value.tolist() if isinstance(value, np.ndarray) else value
                for name, value in self._constants.items()
            },
            "unsupported": first_names(self._unsupported()),
        }

    async def _read_graphs(self, plan: ExecutionPlan) -> None:
        for delegate in plan.delegates:
            blob = delegate.data
            if delegate.backend != BACKEND:
                continue
            if blob not in self._graphs:
                head = await self._read(Segment(blob.offset, min(blob.size, HEADER.size)))
                header = read_delegate_header(self._file, head, blob)
                data = await self._read(header.graph)
                self._graphs[blob] = read_graph(self._file, data, header, self._budget)
            self._budget.spend(self._graphs[blob].cost)

    async def _read(self, part: Segment) -> bytes:
        self._budget.read(part.size)
        return await self._source.read(part.offset, part.size)

    def _unsupported(self) -> list[str]:
        names = set(self._container.unsupported)
        for plan in self._plans:
            for call in plan.instructions:
                if isinstance(call, KernelCall) and call.name not in (COPY, *HOST_KERNELS):
                    names.add(f"{call.name} (outside the delegate)")
            for delegate in plan.delegates:
                if delegate.backend != BACKEND:
                    names.add(f"the backend {delegate.backend}")
                    continue
                graph = self._graphs[delegate.data]
                names |= {call.name for call in graph.chain if call.name not in REGISTRY}
                names |= graph.unsupported
        return sorted(names)

    async def _stored_data(self) -> StoredData:
        named = {}
        for file in self._data:
            named.update(await read_tensor_data(file))
        for key, segment in self._container.named.items():
            named[key] = StoredRange(self._source, segment.offset, segment.size)
        return StoredData(self._source, named)

    # Methods -----------------------------------------------------------------------------------

    def _method(self, plan: ExecutionPlan, stored: StoredData) -> Method:
        steps: list[Step] = []
        inputs = frozenset(plan.inputs)
        called: set[int] = set()
        for call in plan.instructions:
            if isinstance(call, DelegateCall):
                if call.delegate in called:
                    raise PteError(f"{self._where(plan)} calls a delegate twice")
                called.add(call.delegate)
                steps.append(self._delegate_step(plan, call, stored))
            elif isinstance(call, MoveCall):
                steps.append(self._move_step(plan, call))
            elif call.name == COPY:
                steps.append(self._copy_step(plan, call))
            else:
                steps.append(self._kernel_step(plan, inputs, call))
        method = Method(plan.name, plan.values, plan.inputs, plan.outputs, tuple(steps))
        self._check_order(method)
        return method

    def _copy_step(self, plan: ExecutionPlan, call: KernelCall) -> CopyStep:
        """Translate `aten::copy_`: [destination, source, non_blocking, destination]."""
        is_known = len(call.args) == 4 and call.args[0] == call.args[3]
        if not is_known or not all(
            isinstance(plan.values[value_id], HostTensor) for value_id in call.args[:2]
        ):
            raise self._unknown_form(plan, call)
        return CopyStep(source=call.args[1], destination=call.args[0])

    def _kernel_step(
        self, plan: ExecutionPlan, inputs: frozenset[int], call: KernelCall
    ) -> KernelStep:
        """Translate a call: [arguments…, destinations…, all destinations]."""
        kernel = HOST_KERNELS[call.name]
        args = kernel.bind(plan.values, call.args, inputs)
        if args is None:
            raise self._unknown_form(plan, call)
        count = len(kernel.kinds)
        destinations = call.args[count : count + kernel.outputs]
        return KernelStep(call.name, kernel, args, destinations)

    def _unknown_form(self, plan: ExecutionPlan, call: KernelCall) -> PteError:
        return PteError(f"{self._where(plan)} has a {call.name} of an unknown form")

    def _move_step(self, plan: ExecutionPlan, call: MoveCall) -> MoveStep:
        source, destination = plan.values[call.source], plan.values[call.destination]
        is_same = type(source) is type(destination)
        if isinstance(source, HostTensor) and isinstance(destination, HostTensor):
            is_same = (source.dtype, source.dims) == (destination.dtype, destination.dims)
        if not is_same:
            raise PteError(f"{self._where(plan)} moves a value to where another kind is")
        return MoveStep(call.source, call.destination)

    def _delegate_step(
        self, plan: ExecutionPlan, call: DelegateCall, stored: StoredData
    ) -> DelegateStep:
        graph = self._graphs[plan.delegates[call.delegate].data]
        arguments = [plan.values[value_id] for value_id in call.args]
        translated = translate(self._where(plan), graph, arguments, stored)
        try:
            check_program(translated.program)
        except GraphError as error:
            raise PteError(f"{self._where(plan)}: {error}") from None
        check_ops(translated.program)
        count = len(graph.inputs)
        return DelegateStep(
            translated.program, translated.ranges, call.args[:count], call.args[count:]
        )

    def _check_order(self, method: Method) -> None:
        """Every value a step takes is there by then; tensors stored beside the delegate are not."""
        known = set(method.input_ids)
        for step in method.steps:
            if isinstance(step, DelegateStep):
                taken = step.inputs
            elif isinstance(step, KernelStep):
                taken = step.taken
            else:
                taken = (step.source,)
            if isinstance(step, CopyStep) and step.destination not in known:
                raise UnsupportedPteError(
                    f"{self._file}, method '{method.name}'",
                    [f"{COPY} into a buffer of the model's"],
                    "make inputs of the buffers that the model changes",
                )
            self._check_known(method, taken, known)
            if isinstance(step, DelegateStep):
                known.update(step.outputs)
            else:
                known.update(
                    step.destinations if isinstance(step, KernelStep) else (step.destination,)
                )
        self._check_known(method, method.output_ids, known)

    def _check_known(self, method: Method, wanted: Sequence[int], known: set[int]) -> None:
        for value_id in wanted:
            value = method.values[value_id]
            if value_id in known or value is None or isinstance(value, bool | int | float | str):
                continue
            if isinstance(value, HostTensor) and value.buffer:
                raise UnsupportedPteError(
                    f"{self._file}, method '{method.name}'",
                    ["a constant or a buffer outside the delegate"],
                    f"export the model so that all of it runs in {BACKEND}",
                )
            raise PteError(
                f"{self._file}, method '{method.name}': value {value_id} is used, but nothing "
                "computes it"
            )

    def _where(self, plan: ExecutionPlan) -> str:
        return f"{self._file}, method '{plan.name}'"

    # Constant methods --------------------------------------------------------------------------

    async def _constant(self, plan: ExecutionPlan) -> ConstantResult:
        values = [
            await self._constant_value(plan, plan.values[value_id]) for value_id in plan.outputs
        ]
        is_one = len(values) == 1 and not _is_list(plan.output_spec)
        return values[0] if is_one else values

    async def _constant_value(self, plan: ExecutionPlan, value: EValue) -> ConstantResult:
        buffers = self._container.buffers
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, HostTensor) and 0 < value.buffer < len(buffers):
            data, nbytes = buffers[value.buffer], numel(value.dims) * value.dtype.itemsize
            if nbytes > MAX_CONSTANT_BYTES:
                raise PteError(
                    f"{self._where(plan)} gives a tensor of {in_words(nbytes)}; at most "
                    f"{in_words(MAX_CONSTANT_BYTES)} are read",
                    "export the model without that method",
                )
            if value.dtype.itemsize and nbytes <= data.size:
                found = await self._read(Segment(data.offset, nbytes)) if nbytes else b""
                return np.frombuffer(found, value.dtype).reshape(value.dims)
        raise PteError(f"{self._where(plan)} gives neither a number, a text nor a small tensor")


def _is_list(output_spec: str) -> bool:
    """Return whether a model's own method returned a list; torch writes the spec as a tree."""
    try:
        return json.loads(output_spec)[1]["type"] in ("builtins.list", "builtins.tuple")
    except (ValueError, TypeError, LookupError, RecursionError):
        return False
