"""The anatomy of a decoder, read from its program by data flow, never by the names of values.

The residual stream is the chain of sums from the embedding to the last norm. What is added to it
comes from a branch: a mixer (attention of any kind, a convolution, a delta net, Mamba), which
begins a block, unless it reads what the mixer before it reads; or an MLP, experts, and whatever
else a block adds.
"""

from dataclasses import dataclass, field

from py_runtime.base.errors import InputError
from py_runtime.glass.flow import Flow
from py_runtime.passes.chain import VIEWS
from py_runtime.passes.linear_calls import LINEARS
from py_runtime.program import OpCall, Program, op_names

MIXERS = {
    "inpage.short_conv.default": "short convolution",
    "inpage.conv_silu.default": "delta net",
    "inpage.gated_delta.default": "delta net",
    "inpage.conv_part_silu.default": "mamba",
    "inpage.selective_scan.default": "mamba",
}
ATTENTIONS = (*op_names.FILLING, *op_names.ATTEND)
ATTENTION = "attention"
NORM = op_names.RMS_NORM

ACTIVATIONS = (op_names.SILU, op_names.GELU, "aten.relu.default", "aten.tanh.default")
ROTARIES = ("et_vk.apply_rotary_emb", "inpage.rotary_of_one.")
SIGMOID = "aten.sigmoid.default"


@dataclass(frozen=True)
class Attention:
    """The attention of a block; values of heads are [1, S, H, D]."""

    call: OpCall
    q: int  # as attention reads it: rotated
    caches: tuple[int, int]  # of keys and values
    start: int  # SymInt: the position of the first token
    z: int  # what it gives
    raw_q: int
    k: int | None  # rotated; none where another layer's are used
    raw_k: int | None
    v: int | None
    scale: float
    window: int | None = None
    softcap: float | None = None
    sinks: int | None = None


@dataclass(frozen=True)
class Mlp:
    """The hidden layer of an MLP: [1, S, F]."""

    post: int
    pre: int | None  # into the activation
    linear: int | None  # what the activation is multiplied by
    down: OpCall


@dataclass(frozen=True)
class Branch:
    """A summand of the residual stream."""

    out: int
    before: int  # the stream that it is added to
    after: int  # and the sum
    norm: OpCall | None  # of what it reads
    kind: str  # "attention", another mixer's name, "experts" or "mlp"
    attention: Attention | None = None
    mlp: Mlp | None = None

    @property
    def is_mixer(self) -> bool:
        return self.kind not in ("mlp", "experts")


@dataclass(frozen=True)
class Block:
    """A layer."""

    pre: int
    post: int
    mixer: Branch | None
    others: tuple[Branch, ...] = ()

    @property
    def mid(self) -> int | None:
        return None if self.mixer is None else self.mixer.after


@dataclass(frozen=True)
class Anatomy:
    """The parts of a decoder by their value ids."""

    program: Program
    embed: int
    blocks: tuple[Block, ...]
    rows: int  # the stream behind the last block: [1, S, W]
    select: OpCall  # its last row
    tail: tuple[OpCall, ...]  # from that row to the logits
    norm: OpCall | None  # the last one
    flow: Flow = field(repr=False)

    @property
    def width(self) -> int:
        return self.flow.dims(self.rows)[-1]

    @property
    def vocabulary(self) -> int:
        return self.flow.dims(self.program.outputs[0])[-1]

    @property
    def start(self) -> int | None:
        """Return the SymInt of the first token's position, if an op of the model reads it."""
        found = (block.mixer.attention for block in self.blocks if block.mixer is not None)
        starts = [attention.start for attention in found if attention is not None]
        starts += [
            self.flow.arg(call, "start_pos") for call in self.program.ops if call.name in MIXERS
        ]
        return starts[0] if starts else None

    @classmethod
    def of(cls, program: Program) -> "Anatomy":
        """Read a decoder's program as it is before any pass; InputError if it is another one."""
        return _Reader(program).read()


class _Reader:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.flow = Flow(program)

    def read(self) -> Anatomy:
        select, tail = self._tail()
        rows = select.args[0]
        chain = self._chain(rows)
        embed = chain[0][0] if chain else rows
        ends = {embed, *(value for before, _, after in chain for value in (before, after))}
        branches = [self._branch(before, out, after, ends - {out}) for before, out, after in chain]
        norm = next((call for call in tail if call.name == NORM), None)
        blocks = self._blocks(branches, rows)
        return Anatomy(self.program, embed, blocks, rows, select, tail, norm, self.flow)

    def _tail(self) -> tuple[OpCall, tuple[OpCall, ...]]:
        calls: list[OpCall] = []
        for _, call in self.flow.backwards(self.program.outputs[0]):
            if call.name == op_names.SELECT and len(self.flow.dims(call.args[0])) == 3:
                return call, tuple(reversed(calls))
            calls.append(call)
        raise InputError(
            f"{self.program.name} has no hidden states that could be read: its logits do not come "
            "from the last of several rows"
        )

    def _chain(self, rows: int) -> list[tuple[int, int, int]]:
        """Return (the stream, a branch, their sum), from the embedding on."""
        flow, dims = self.flow, self.flow.dims(rows)
        found: list[tuple[int, int, int]] = []
        after = value = rows
        while (call := flow.maker(value)) is not None:
            if call.name == op_names.ADD and self._adds_rows(call, dims):
                stream, branch = self._parted(flow.arg(call, "a"), flow.arg(call, "b"))
                found.append((stream, branch, after))
                after = value = stream
            elif call.name == op_names.MUL or call.name in VIEWS:  # by a number of the layer's
                sources = [v for v in flow.made_of(call) if flow.dims(v) == dims]
                if len(sources) != 1:
                    break
                value = sources[0]
            else:
                break
        return found[::-1]

    def _adds_rows(self, call: OpCall, dims: tuple[int, ...]) -> bool:
        a, b = self.flow.arg(call, "a"), self.flow.arg(call, "b")
        made = all(self.flow.made_at(each) >= 0 for each in (a, b))
        return made and self.flow.dims(a) == self.flow.dims(b) == dims

    def _parted(self, a: int, b: int) -> tuple[int, int]:
        """Return which of two summands is the stream, and which the branch."""
        if self.flow.reaches(a, b):
            return a, b
        if self.flow.reaches(b, a):
            return b, a
        maker = self.flow.maker(b)  # both were made from an earlier sum
        is_sum = maker is not None and maker.name == op_names.ADD
        first = self.flow.maker(a)
        return (b, a) if is_sum and (first is None or first.name != op_names.ADD) else (a, b)

    def _blocks(self, branches: list[Branch], rows: int) -> tuple[Block, ...]:
        groups: list[list[Branch]] = []
        for branch in branches:
            is_beside = groups and branch.norm is not None and branch.norm is groups[-1][0].norm
            if not groups or (branch.is_mixer and not is_beside):
                groups.append([])
            groups[-1].append(branch)
        blocks = []
        for group in groups:
            mixer = group[0] if group[0].is_mixer else None
            others = tuple(group[1:] if mixer is not None else group)
            blocks.append(Block(group[0].before, group[-1].after, mixer, others))
        return tuple(blocks)

    # Branches ----------------------------------------------------------------------------------

    def _branch(self, before: int, out: int, after: int, ends: set[int]) -> Branch:
        calls = self.flow.cone(out, ends)
        norm = next((c for c in calls if c.name == NORM and c.args[0] in ends), None)
        attention = next((c for c in calls if c.name in ATTENTIONS), None)
        if attention is not None:
            parts = self._attention(attention)
            return Branch(out, before, after, norm, ATTENTION, attention=parts)
        mixer = next((MIXERS[c.name] for c in calls if c.name in MIXERS), None)
        if mixer is None and any(map(self.flow.is_state, self._read_by(calls))):
            mixer = "mixer"
        if mixer is not None:
            return Branch(out, before, after, norm, mixer)
        if any(c.name == op_names.EXPERTS for c in calls):
            return Branch(out, before, after, norm, "experts")
        return Branch(out, before, after, norm, "mlp", mlp=self._mlp(out))

    def _read_by(self, calls: list[OpCall]) -> list[int]:
        return [value_id for call in calls for value_id in self.program.reads(call)]

    def _attention(self, call: OpCall) -> Attention:
        flow = self.flow
        q = flow.arg(call, "q")
        own = call.name in op_names.FILLING
        k, v = (flow.arg(call, "k"), flow.arg(call, "v")) if own else (None, None)
        scale = flow.number(flow.arg(call, "scale"))
        seen = call.name not in (op_names.SDPA, op_names.ATTEND_KV_CACHE)
        window = flow.number(flow.arg(call, "window")) if seen else None
        sinks = flow.arg(call, "sinks") if seen else None
        return Attention(
            call,
            q,
            (flow.arg(call, "k_cache"), flow.arg(call, "v_cache")),
            flow.arg(call, "start_pos"),
            call.args[-1],
            self._raw(q),
            k,
            None if k is None else self._raw(k),
            None if v is None else self._raw(v),
            flow.dims(q)[-1] ** -0.5 if scale is None else scale,
            None if window is None else int(window),
            flow.number(flow.arg(call, "softcap")) if seen else None,
            sinks if sinks is not None and flow.is_constant(sinks) else None,
        )

    def _raw(self, value_id: int) -> int:
        """Return heads as the projection gives them: before norms and rotation."""
        flow = self.flow
        while (call := flow.maker(value_id)) is not None:
            if call.name.startswith(ROTARIES):
                outs = list(flow.program.writes(call))
                value_id = call.args[outs.index(value_id)]
            elif call.name == NORM:
                value_id = call.args[0]
            else:
                break
        return value_id

    def _mlp(self, out: int) -> Mlp | None:
        flow = self.flow
        down = next((c for _, c in flow.backwards(out) if c.name in LINEARS), None)
        if down is None:
            return None
        post = flow.unviewed(down.args[0], 3)
        made = flow.maker(post)
        if made is None or len(flow.dims(post)) != 3:
            return None
        if made.name != op_names.MUL:
            pre = self._activated(post)
            return None if pre is None else Mlp(post, pre, None, down)
        a, b = flow.arg(made, "a"), flow.arg(made, "b")
        if a == b:  # squared, without a gate
            return Mlp(post, self._activated(a), None, down)
        for gated, plain in ((a, b), (b, a)):
            pre = self._activated(gated)
            if pre is not None and len(flow.dims(plain)) == 3:
                return Mlp(post, pre, plain, down)
        return Mlp(post, None, None, down)

    def _activated(self, value_id: int) -> int | None:
        """Return what goes into the activation that makes a value; x * sigmoid(x) is one, too."""
        flow, call = self.flow, self.flow.maker(value_id)
        if call is not None and call.name in ACTIVATIONS:
            return call.args[0]
        if call is None or call.name != op_names.MUL:
            return None
        a, b = flow.arg(call, "a"), flow.arg(call, "b")
        for x, other in ((a, b), (b, a)):
            gate = flow.maker(other)
            if gate is not None and gate.name == SIGMOID and gate.args[0] == x:
                return x
        return None
