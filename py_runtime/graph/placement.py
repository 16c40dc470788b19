"""The placement of a graph's values on the GPU: buffers, bindings, places of constants."""

from collections.abc import Hashable, Iterator, Mapping

from py_runtime.base.errors import GpuOutOfMemoryError, GraphError
from py_runtime.base.sizes import in_words
from py_runtime.gpu import Binding, Buffer, Device
from py_runtime.graph.buffers import COPY, UNIFORMS, BufferPlan, Content, plan_buffers
from py_runtime.graph.builder import Builder, LaunchSpec
from py_runtime.graph.carried_states import COPIES
from py_runtime.graph.memory import MemoryReport
from py_runtime.live.launch import Bindable, Joined, Scratch, WeightSlice
from py_runtime.live.uniforms import SYMINT_BYTES
from py_runtime.live.values import LiveInt, LiveTensor
from py_runtime.program import TensorValue
from py_runtime.weights.constants import Place

PART_BYTES = 256  # WebGPU binds parts of a buffer that begin at multiples of it


class Placement:
    """Buffers of a graph; empty until `await placement.allocate()`, and again after `release()`."""

    plan: BufferPlan
    report: MemoryReport
    uniforms: Buffer
    state_copies: list[Buffer]  # none where no state is carried

    def __init__(self, device: Device, builder: Builder) -> None:
        self._device = device
        self._builder = builder
        self.buffers: dict[int, Buffer] = {}  # of each tensor, by value id
        self.offsets: dict[int, int] = {}  # in its buffer, of a constant joined with others
        self.owned: list[Buffer] = []
        self.lendable: dict[Content, Binding] = {}  # to graphs of the same model

    async def allocate(self, lendable: Mapping[Content, Binding]) -> None:
        """Allocate all buffers that nobody lends, or raise GpuOutOfMemoryError and keep none."""
        builder, plan = self._builder, plan_buffers(self._builder, lendable)
        try:
            buffers = await self._device.create_buffers(
                list(plan.specs.values()), builder.program.name
            )
        except GpuOutOfMemoryError as error:
            raise GpuOutOfMemoryError(
                f"{builder.program.name} needs {in_words(plan.report.peak)} of memory, more "
                "than this device has free: close other tabs and programs that use it, or take a "
                "smaller model, or the same one exported with a smaller --max-seq-len "
                f"(what did not fit: {error})"
            ) from None
        self.owned, self.plan = buffers, plan
        by_key = dict(zip(plan.specs, buffers, strict=True))
        by_key |= {key: found.buffer for key, found in plan.lent.items()}
        self.uniforms = by_key[UNIFORMS]
        self._scratch_buffers = {
            scratch: by_key[plan.key_of[scratch]] for scratch in builder.scratches
        }
        for value_id in builder.tensors:
            root = builder.root(value_id)
            if root in plan.key_of:  # a tensor that no op touches has no memory
                key = plan.key_of[root]
                self.buffers[value_id] = by_key[key]
                if key in plan.lent and plan.lent[key].size is not None:
                    self.offsets[value_id] = plan.lent[key].offset
        self._joined_buffers = {
            joined: by_key[plan.key_of[joined]] for joined in builder.joins.values()
        }
        self._slice_buffers = {
            weight_slice: by_key[plan.key_of[weight_slice]]
            for weight_slice in builder.slices.values()
        }
        for joined, buffer in self._joined_buffers.items():
            for part, offset in joined.offsets():
                if part.id not in self.buffers:
                    self.buffers[part.id], self.offsets[part.id] = buffer, offset
        self.report = plan.report
        self.lendable = {
            content: plan.lent.get(key, Binding(by_key[key]))
            for key, content in plan.content_of.items()
        }
        for content, binding in self._parts():
            self.lendable.setdefault(content, binding)
        self.state_copies = [by_key[COPY, at] for at in range(COPIES) if (COPY, at) in by_key]

    def release(self) -> None:
        """Free the memory."""
        self._device.destroy_buffers(self.owned)
        self.owned = []
        self.buffers = {}
        self.lendable = {}

    def _parts(self) -> Iterator[tuple[Content, Binding]]:
        """Yield the constants that can be bound as a part of the buffer they are joined in."""
        for joined, buffer in self._joined_buffers.items():
            for part, offset in joined.offsets():
                value = self._builder.program.values[part.id]
                assert isinstance(value, TensorValue)
                if offset % PART_BYTES == 0 and part.max_bytes % 16 == 0:  # whole vectors
                    content: tuple[Hashable, ...] = ("constant", value.constant)
                    yield content, Binding(buffer, offset, part.max_bytes)

    def binding(self, spec: LaunchSpec, resource: Bindable | None) -> Binding:
        """Return the binding of a resource; None stands for the kernel's own parameters."""
        if resource is None:
            return Binding(self.uniforms, spec.launch.offset, spec.launch.layout.struct.size)
        if isinstance(resource, LiveInt):
            return Binding(self.uniforms, resource.slot(self._builder.arena), SYMINT_BYTES)
        size = offset = None
        if isinstance(resource, LiveTensor):
            buffer, offset = self.buffers[resource.id], self.offsets.get(resource.id)
            size = None if offset is None else resource.max_bytes
        elif isinstance(resource, Joined):
            buffer = self._joined_buffers[resource]
        elif isinstance(resource, WeightSlice):
            buffer = self._slice_buffers[resource]
        else:
            buffer = self._scratch_buffers[resource]
        limit = self._device.limits["max_storage_buffer_binding_size"]
        taken = size or buffer.size
        if taken > limit:
            raise GraphError(
                f"{resource.label} takes {taken} bytes; this device binds at most {limit}; "
                "export the model with smaller dims, or smaller maximum sizes for dynamic ones"
            )
        return Binding(buffer, offset or 0, size)

    def scratch_buffer(self, scratch: Scratch) -> Buffer:
        return self._scratch_buffers[scratch]

    def constant_places(self) -> dict[str, list[Place]]:
        """Return the places where the bytes of each constant go."""
        program = self._builder.program
        places: dict[str, dict[Place, None]] = {}  # each place once, in order
        for value_id, _, name in program.constants():
            places.setdefault(name, {})
            if value_id in self.buffers:  # else it lies in slices
                own = Place(self.buffers[value_id], self.offsets.get(value_id, 0))
                places[name][own] = None
        for joined, buffer in self._joined_buffers.items():
            for part, offset in joined.offsets():
                value = program.values[part.id]
                assert isinstance(value, TensorValue)
                assert value.constant is not None
                places[value.constant][Place(buffer, offset)] = None
        for (name, start, nbytes), weight_slice in self._builder.slices.items():
            places[name][Place(self._slice_buffers[weight_slice], 0, start, nbytes)] = None
        return {name: list(found) for name, found in places.items()}
