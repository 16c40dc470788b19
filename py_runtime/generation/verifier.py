"""Several tokens at once, proposed before they were drawn: a model says which of them it writes.

The model's own program computes the logits of the last token of a call. Here a second graph of it
takes a few tokens and gives the logits of each; it shares weights and caches with the first. Behind
it, the sampling kernel draws from one row after the other, as it would have from one call after the
other, and stops where a token is not the one that was proposed. So the tokens are those that
decoding one by one gives, drawn with the same random numbers.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from py_runtime.generation.decode_loop import LOGITS, ONE_WORKGROUP, OTHERS, TOKENS, Drawing
from py_runtime.generation.device_sampler import STATE_HEADER, WORD, DeviceSampler
from py_runtime.gpu import Dispatch, Plan, Read
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.graph import Graph
from py_runtime.passes import Pass, ring_caches
from py_runtime.program import IntValue, OpCall, Program, TensorValue, Value, op_names

# Of one call: on the CPU, what so few tokens get depends on no other (docs/linear.md).
MOST_TOKENS = 16
NO_COUNTS = np.zeros((MOST_TOKENS, 3), np.uint32)


class Verifier:
    """A graph for a few tokens, and what draws from its logits; use `await Verifier.create(…)`."""

    def __init__(self, graph: Graph, sampler: DeviceSampler, step: Dispatch) -> None:
        self.graph = graph
        self._sampler = sampler
        steps = [*graph.plan_steps, *[step] * MOST_TOKENS]
        self._plan: Plan = graph.device.create_plan(f"{graph.program.name} with draws", steps)

    @classmethod
    async def create(cls, base: Graph, sampler: DeviceSampler) -> "Verifier":
        """Build the graph beside a decoder's own, whose sampler draws here, too."""
        at = base.passes.index(ring_caches.run) + 1 if ring_caches.run in base.passes else 0
        passes: list[Pass] = [*base.passes[:at], give_all_logits, *base.passes[at:]]
        graph = await Graph.load(base.device, base.written, {}, passes=passes, base=base)
        try:
            step = await sampler.step_from(graph.buffer(graph.program.outputs[LOGITS]))
            return cls(graph, sampler, step)
        except BaseException:
            graph.unload()
            raise

    def run(self, tokens: Sequence[int], inputs: Sequence[np.ndarray]) -> Drawing:
        """Compute these tokens, which the graph's inputs are for, and draw after each.

        The first was drawn; the others were proposed, and are drawn or end the batch.
        """
        graph, count = self.graph, len(tokens)
        writes = graph.resized(inputs)
        writes += self._sampler.verification(tokens[1:])
        draws = NO_COUNTS.copy()
        draws[:count] = ONE_WORKGROUP
        counts = np.vstack([graph.live_counts((LOGITS,)), draws])
        read = Read(self._sampler.state, (STATE_HEADER + count) * WORD)
        state = graph.device.submit_to_read(self._plan, counts, writes, [read])
        graph.arena.uploaded()
        return Drawing(count, self._sampler.vocabulary, state)

    async def compute(self, inputs: Sequence[np.ndarray]) -> None:
        """Compute these inputs for what they leave in caches and states, and wait for that."""
        graph = self.graph
        writes = graph.resized(inputs)
        graph.device.submit(graph.plan, graph.live_counts(()), writes)
        graph.arena.uploaded()
        await graph.finish()

    def unload(self) -> None:
        self.graph.device.release([self._plan])
        self.graph.unload()


def can_verify(graph: Graph) -> bool:
    """Return whether all tokens of a call can have logits.

    What lies over a model's own graph (adapters, steering, ops and kernels of the user's) was built
    for one token's logits.
    """
    is_own = graph.base is None and graph.variant is None
    return is_own and with_all_logits(graph.written) is not None


def give_all_logits(program: Program, target: KernelTarget) -> Program:
    """Let a decoder take MOST_TOKENS tokens at most and give the logits of each."""
    changed = with_all_logits(program)
    assert changed is not None, "can_verify says so"
    return changed


def with_all_logits(program: Program) -> Program | None:
    """Return the program with logits [S, V] of all tokens; None where their form is another one.

    Behind the op that takes the last row of [1, S, W], others compute [1, X] from [1, X].
    """
    first = program.values[program.inputs[TOKENS].value]
    last_row = _last_row_of(program)
    if not isinstance(first, TensorValue) or last_row is None:
        return None
    tokens, values = min(first.dims[1], MOST_TOKENS), list(program.values)
    row, *tail = program.ops[last_row:]
    for made in (value_id for call in (row, *tail) for value_id in program.writes(call)):
        value = values[made]
        if not isinstance(value, TensorValue) or value.dims[:1] != (1,) or len(value.dims) != 2:
            return None
        values[made] = replace(value, dims=(tokens, value.dims[1]))
    before = [value_id for call in program.ops[:last_row] for value_id in program.writes(call)]
    own_rows = [given.value for given in program.inputs[OTHERS:]]
    for made in (program.inputs[TOKENS].value, *own_rows, *before):
        value = values[made]
        if isinstance(value, TensorValue) and value.dims[:2] == first.dims and not value.persistent:
            values[made] = replace(value, dims=(1, tokens, *value.dims[2:]))
    zero = _added(values, IntValue(0))
    all_rows = OpCall(op_names.SELECT, (row.args[0], zero, zero, row.args[-1]), row.source)
    ops = (*program.ops[:last_row], all_rows, *tail)
    return replace(program, values=tuple(values), ops=ops)


def _last_row_of(program: Program) -> int | None:
    """Return the index of the op that takes the last of all rows; all that follow read its row."""
    for index, call in enumerate(program.ops):
        if call.name != op_names.SELECT:
            continue
        source, dim, which = (program.values[value_id] for value_id in call.args[:3])
        is_row = isinstance(source, TensorValue) and len(source.dims) == 3
        if not is_row or (dim, which) != (IntValue(1), IntValue(-1)):
            continue
        after = {call.args[-1]}
        for other in program.ops[index + 1 :]:
            if after & set(program.reads(other)):
                after |= set(program.writes(other))
        rest = {made for other in program.ops[index + 1 :] for made in program.writes(other)}
        return index if rest <= after else None
    return None


def _added(values: list[Value], value: Value) -> int:
    values.append(value)
    return len(values) - 1
