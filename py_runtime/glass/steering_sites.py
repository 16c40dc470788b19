"""The places of a decoder where steering changes values, and the pass that makes them.

A place is a value of the unfused program: what layers add to the residual stream, the stream
itself, the heads of attention, the hidden neurons of an MLP. A vector is added to the stream as the
bias of the linear that ends a layer, which costs nothing; elsewhere it is a sum of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from py_runtime.base.dtypes import F32
from py_runtime.base.errors import RequestError
from py_runtime.base.shapes import Dims
from py_runtime.glass.anatomy import Anatomy, Block
from py_runtime.glass.flow import Flow
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.passes.linear_calls import LINEARS
from py_runtime.program import (
    IntValue,
    NullValue,
    OpCall,
    Program,
    TensorValue,
    Value,
    ValueListValue,
    op_names,
)

ADD, MULTIPLY = "add", "multiply"
BIAS_ROWS = 4  # biases of some kinds of weights are padded to a multiple of so many


@dataclass(frozen=True)
class Site:
    """A value, and what is done to it: x + numbers, or x * numbers."""

    value: int
    how: str
    dims: Dims  # of the numbers: the last of the value's
    name: str  # the constant's


def stream_site(anatomy: Anatomy, layer: int) -> Site:
    """Return the place where vectors are added behind a layer."""
    value = block_of(anatomy, layer).post
    dims = anatomy.flow.dims(value)[-1:]
    return Site(value, ADD, dims, f"steering.blocks.{layer}.hook_resid_post")


def branch_sites(anatomy: Anatomy, layer: int, kinds: Sequence[str]) -> list[Site]:
    """Return the places of what a layer adds to the stream: "mixer", "mlp" and "more".

    Experts that all tokens share read what the others read, and are of the MLP.
    """
    block = block_of(anatomy, layer)
    mixer = [("mixer", block.mixer)] if block.mixer is not None else []
    first = block.others[0].norm if block.others else None
    found = [
        *mixer,
        *(
            ("more" if at and (first is None or branch.norm != first) else "mlp", branch)
            for at, branch in enumerate(block.others)
        ),
    ]
    return [
        Site(
            branch.out,
            MULTIPLY,
            anatomy.flow.dims(branch.out)[-1:],
            f"steering.blocks.{layer}.{kind}_out.{at}",
        )
        for at, (kind, branch) in enumerate(found)
        if kind in kinds
    ]


def heads_site(anatomy: Anatomy, layer: int) -> Site:
    """Return the place of what each head of attention gives: [H, D]."""
    mixer = block_of(anatomy, layer).mixer
    if mixer is None or mixer.attention is None:
        raise RequestError(f"layer {layer} has no attention, so it has no heads", "layer")
    z = mixer.attention.z
    return Site(z, MULTIPLY, anatomy.flow.dims(z)[-2:], f"steering.blocks.{layer}.attn.hook_z")


def neurons_site(anatomy: Anatomy, layer: int) -> Site:
    """Return the place of the hidden layer of an MLP: [F]."""
    for branch in block_of(anatomy, layer).others:
        if branch.mlp is not None:
            post = branch.mlp.post
            dims = anatomy.flow.dims(post)[-1:]
            return Site(post, MULTIPLY, dims, f"steering.blocks.{layer}.mlp.hook_post")
    raise RequestError(f"layer {layer} has no MLP whose neurons could be told apart", "layer")


def block_of(anatomy: Anatomy, layer: int) -> Block:
    """Return a layer; RequestError if there is none of this number."""
    count = len(anatomy.blocks)
    if isinstance(layer, bool) or not isinstance(layer, int) or not 0 <= layer < count:
        raise RequestError(f"layer must be an integer from 0 to {count - 1}", "layer")
    return anatomy.blocks[layer]


@dataclass(frozen=True)
class AddSites:
    """The pass for some places; it comes ahead of all others."""

    sites: Mapping[int, Site]  # by their values

    def __call__(self, program: Program, target: KernelTarget) -> Program:
        """Change each value for all who read it."""
        return _Rewriting(program, self.sites).rewrite()


class _Rewriting:
    def __init__(self, program: Program, sites: Mapping[int, Site]) -> None:
        self._program = program
        self._sites = dict(sites)
        self._values: list[Value] = list(program.values)
        self._changed: dict[int, int] = {}  # a value → what stands for it from there on
        self._biases = self._linears_with_room(Flow(program))

    def rewrite(self) -> Program:
        ops: list[OpCall] = []
        for call in self._program.ops:
            *reads, out = call.args
            given = [self._read(arg) for arg in reads]
            if out in self._biases:
                # The bias is next to last: x weight (scales group_size) bias out.
                given[-1] = self._constant(self._biases[out])
            ops.append(replace(call, args=(*given, out)))
            for value_id in self._program.writes(call):
                if value_id in self._sites:
                    ops.append(self._change(self._sites[value_id], call.source))
        outputs = tuple(map(self._read, self._program.outputs))
        return replace(self._program, values=tuple(self._values), ops=tuple(ops), outputs=outputs)

    def _linears_with_room(self, flow: Flow) -> dict[int, Site]:
        """Return sites of sums that can be the bias of the linear before, by its output."""
        found: dict[int, Site] = {}
        for value_id, site in list(self._sites.items()):
            made = flow.maker(value_id)
            if site.how != ADD or made is None or made.name != op_names.ADD:
                continue
            for summand in made.args[:2]:
                linear = flow.maker(summand)
                if (
                    linear is not None
                    and linear.name in LINEARS
                    and summand not in self._sites
                    and self._times_read(summand) == 1
                    and self._is_null(linear.args[-2])
                    and site.dims[0] % BIAS_ROWS == 0
                ):
                    found[summand] = site
                    del self._sites[value_id]
                    break
        return found

    def _times_read(self, value_id: int) -> int:
        calls = sum(list(self._program.reads(call)).count(value_id) for call in self._program.ops)
        return calls + self._program.outputs.count(value_id)

    def _is_null(self, value_id: int) -> bool:
        return isinstance(self._values[value_id], NullValue)

    def _read(self, arg: int) -> int:
        value = self._values[arg]
        if isinstance(value, ValueListValue) and any(item in self._changed for item in value.ids):
            ids = tuple(self._changed.get(item, item) for item in value.ids)
            self._values.append(ValueListValue(ids))
            return len(self._values) - 1
        return self._changed.get(arg, arg)

    def _change(self, site: Site, source: str) -> OpCall:
        value = self._values[site.value]
        assert isinstance(value, TensorValue), "of a tensor"
        numbers = self._constant(site)
        self._values.append(TensorValue(value.dtype, value.dims))
        out = self._changed[site.value] = len(self._values) - 1
        if site.how == MULTIPLY:
            return OpCall(op_names.MUL, (site.value, numbers, out), source)
        self._values.append(IntValue(1))
        return OpCall(op_names.ADD, (site.value, numbers, len(self._values) - 1, out), source)

    def _constant(self, site: Site) -> int:
        self._values.append(TensorValue(F32, site.dims, site.name, constant=site.name))
        return len(self._values) - 1
