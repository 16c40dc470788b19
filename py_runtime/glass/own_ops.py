"""Ops of one's own, in Python and WGSL, that take the place of the engine's.

@own_op(args="x weight eps out", wgsl=WGSL)
class MyNorm(Op):
    def build(self):
        self.x, self.out = self.tensor("x", F32), self.tensor("out", F32)
        bind = {"x": self.x, "weight": self.tensor("weight", F32), "out": self.out}
        self.kernel = self.launch(kernel_of(self), bind=bind)

    def live(self):
        *rows, width = self.x.dims
        self.out.resize(self.x.dims)
        self.kernel.for_each(numel(rows), rows=numel(rows), width=width, eps=self.number("eps"))

done = await replace(model, ["et_vk.rms_norm.default"], MyNorm)
await done.revert()
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from py_runtime.base.errors import GraphError, RequestError
from py_runtime.base.html import as_html
from py_runtime.glass.calls import GraphCall, calls_for, running
from py_runtime.glass.kernel_checks import (
    Case,
    calls_that_fit,
    check_kind,
    check_plain,
    compare_arrays,
)
from py_runtime.glass.kernel_lab import LENGTHS
from py_runtime.gpu.kernel_sources import KernelSource, join
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.gpu.shader_sources import NEEDS, Library, all_shaders, parse
from py_runtime.graph import Graph
from py_runtime.model import Model
from py_runtime.model.goldens import NoGoldensError
from py_runtime.model.verify import VerifyReport, precision_of, verify_idle
from py_runtime.ops.registry import REGISTRY, Op, OpRow
from py_runtime.passes import Pass
from py_runtime.passes.chain import CallAt, Chain, sources_of
from py_runtime.program import Program

USERS = "users."  # what the names of such ops begin with: they can be declared again

_kernels: dict[str, KernelSource] = {}  # of such ops, by name


def own_op(
    *, args: str, wgsl: str, name: str | None = None, mutates: str = ""
) -> Callable[[type[Op]], type[Op]]:
    """Declare an op of one's own, or declare it anew; the class has `build` and `live`.

    `args` are its arguments in order, the output last; a question mark ends those that may be null.
    """

    def declare(op: type[Op]) -> type[Op]:
        called = f"{USERS}{name or op.__name__}"
        taken = tuple(arg.removesuffix("?") for arg in args.split())
        optional = frozenset(arg[:-1] for arg in args.split() if arg.endswith("?"))
        written = frozenset(mutates.split())
        _kernels[called] = own_kernel(called, wgsl)
        REGISTRY[called] = OpRow(called, taken, optional, op, written, frozenset(), True)
        return op

    return declare


def own_kernel(name: str, wgsl: str) -> KernelSource:
    """Return WGSL as a kernel that ops launch.

    It may name fragments of the engine's own in a line `// needs: …`, as all shaders do.
    """
    source = wgsl if NEEDS.search(wgsl) else f"{wgsl}\n// needs: nothing\n"
    library = Library({**all_shaders().files, name: parse(name, source)})
    return join(library, name, {})


def kernel_of(op: Op) -> KernelSource:
    """Return the kernel that an op of one's own was declared with, for its `launch`."""
    return _kernels[op.name]


def name_of(op: type[Op]) -> str:
    """Return the name under which an op of one's own was declared."""
    for name, row in REGISTRY.items():
        if row.op is op and name.startswith(USERS):
            return name
    raise RequestError(f"{op.__name__} is not declared: put @own_op(args=…, wgsl=…) above it")


@dataclass(eq=False)
class Replacement:
    """Ops of one's own in a running graph, and the checks beside those that they replaced."""

    op: str
    pattern: tuple[str, ...]
    matches: int
    graph: Graph  # the new one
    cases: list[Case] = field(default_factory=list)
    goldens: VerifyReport | None = None
    _target: Model | Graph | None = None
    _before: Graph | None = None

    @property
    def ok(self) -> bool:
        goldens_agree = self.goldens is None or self.goldens.ok
        return all(case.ok for case in self.cases) and goldens_agree

    async def revert(self) -> None:
        """Bring the engine's own ops back."""
        if self._before is None:
            return
        before, self._before = self._before, None
        if isinstance(self._target, Model):
            async with self._target.idle():
                self._target.take_graph(before)
        self.graph.unload()

    def _repr_html_(self) -> str:
        facts = [f"{self.matches} × {' → '.join(self.pattern)}", "✓" if self.ok else "✗ refused"]
        facts += [self.goldens.summary] if self.goldens else []
        rows = [(case.tokens, case.context, f"{case.relative_rms:.1e}") for case in self.cases]
        return as_html(self.op, facts, ("tokens", "context", "relative RMS"), *rows)


async def replace(
    target: Model | Graph,
    pattern: Sequence[str],
    op: type[Op],
    *,
    inputs: Sequence[Sequence[Any]] = (),
    goldens: bool = True,
) -> Replacement:
    """Put an op of one's own in the place of each run of ops, if it computes the same.

    `pattern` is a list of op names, each of which alone reads the result of the one before. The
    op's arguments are those of the run with these names. Where a check fails everything is as it
    was, and the result says what differed. A graph alone is checked with the `inputs` of calls;
    the new graph stands on the old one, and ends with it.
    """
    graph = target.graph if isinstance(target, Model) else target
    check_kind(graph, "an op of one's own in WGSL")
    check_plain(target)
    substitution = Substitution(tuple(pattern), name_of(op))
    async with running(target, 1, 0, inputs[0] if inputs else []):
        new = await Graph.load(
            graph.device,
            graph.written,
            target=graph.target,
            passes=substitution.among(graph),
            base=graph,
        )
        substitution.may_match_nothing = True
        done = Replacement(substitution.op, substitution.pattern, substitution.matches, new)
        try:
            await _check(done, target, graph, inputs, goldens)
        except BaseException:
            _give_back(target, graph, new)
            raise
        if not done.ok:
            _give_back(target, graph, new)
            return done
    done._target, done._before = target, graph
    return done


async def _check(
    done: Replacement,
    target: Model | Graph,
    before: Graph,
    inputs: Sequence[Sequence[Any]],
    goldens: bool,
) -> None:
    calls = [GraphCall(list(each)) for each in inputs]
    if isinstance(target, Model):
        fitting = calls_that_fit(LENGTHS, target.max_chunk, target.context)
        if before.state_copies is not None:
            fitting = [each for each in fitting if not each[1]]
        calls = [(await calls_for(target, *each, None))[1][0] for each in fitting]
    allowed = precision_of(before.target)
    for call in calls:
        results = [(await each.run(call.inputs, [0]))[0] for each in (before, done.graph)]
        wanted, got = (result.astype(np.float64) for result in results)
        done.cases.append(compare_arrays("output 0", call, got, wanted, allowed))
    if isinstance(target, Model):
        target.take_graph(done.graph)
        if goldens:
            try:
                done.goldens = await verify_idle(target)
            except NoGoldensError:
                done.goldens = None


def _give_back(target: Model | Graph, before: Graph, new: Graph) -> None:
    if isinstance(target, Model):
        target.take_graph(before)
    new.unload()


class Substitution:
    """A pass that puts one op in the place of runs of others, and counts them."""

    def __init__(self, pattern: tuple[str, ...], op: str) -> None:
        if not pattern:
            raise RequestError("the pattern is a list of op names, with one at least")
        for name in pattern:
            if name not in REGISTRY:
                raise RequestError(f"there is no op '{name}'")
        self.pattern, self.op = pattern, op
        self.matches = 0
        # Graphs of the same program in which hooks want values may have no such run.
        self.may_match_nothing = False

    def among(self, graph: Graph) -> tuple[Pass, ...]:
        """Return the graph's passes and this one: ahead of them, or behind where they make it."""
        written = {call.name for call in graph.written.ops}
        is_ahead = set(self.pattern) <= written
        return (self, *graph.passes) if is_ahead else (*graph.passes, self)

    def __call__(self, program: Program, target: KernelTarget) -> Program:
        chain = Chain(program)
        self.matches = 0
        for first in chain.calls_of(self.pattern[0]):
            run = self._run_from(chain, first)
            if run is None:
                continue
            call = chain.call(self.op, sources_of(run), **self._given(chain, run))
            chain.replace(run, run[-1].at, [call])
            self.matches += 1
        if not self.matches and not self.may_match_nothing:
            raise GraphError(
                f"nothing matches {' → '.join(self.pattern)}: each op must be the only one that "
                "reads the result of the one before"
            )
        return chain.program()

    def _run_from(self, chain: Chain, first: CallAt) -> list[CallAt] | None:
        run = [first]
        for name in self.pattern[1:]:
            reading = chain.only_call_reading(run[-1].call.args[-1])
            if reading is None or reading.call.name != name:
                return None
            run.append(reading)
        return run

    def _given(self, chain: Chain, run: Sequence[CallAt]) -> dict[str, int | None]:
        """Return the op's arguments: of the run's, those with these names that it does not make."""
        made = {call.args[-1] for _, call in run[:-1]}
        outside: dict[str, int] = {}
        for _, call in run:
            for name, value_id in chain.given(call).items():
                if value_id not in made:
                    outside.setdefault(name, value_id)
        row = REGISTRY[self.op]
        given: dict[str, int | None] = {name: outside.get(name) for name in row.args[:-1]}
        given[row.args[-1]] = run[-1].call.args[-1]
        return {name: None if v is None or chain.is_null(v) else v for name, v in given.items()}
