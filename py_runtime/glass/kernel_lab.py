"""The kernel lab: the WGSL of any launch changed, checked, timed, and kept or taken back.

    lab = kernel_lab(model)
    shader = lab.shaders()[0]
    trial = await lab.try_source(shader.name, shader.source.replace("1e-5", "1e-6"))
    trial.errors or (trial.cases, trial.goldens, trial.times)
    await lab.keep(trial)              # refused if a check failed
    await lab.revert()                 # all kernels are the engine's own again

Nothing outlives the graph: a reload, or a device that was lost, brings the engine's own back.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from py_runtime.base.errors import GpuValidationError, RequestError, ShaderError, ShaderMessage
from py_runtime.base.html import as_html
from py_runtime.glass.calls import GraphCall, Progress, calls_for, ignore, running
from py_runtime.glass.kernel_checks import (
    Case,
    Times,
    calls_that_fit,
    check_kind,
    check_plain,
    compare_arrays,
    compare_op,
    time_in_turns,
)
from py_runtime.glass.workspace import Workspace
from py_runtime.gpu import PipelineSpec
from py_runtime.gpu.shader_figures import members_of
from py_runtime.graph import Graph
from py_runtime.graph.builder import LaunchSpec
from py_runtime.graph.variants import Variant
from py_runtime.model import Model
from py_runtime.model.goldens import NoGoldensError
from py_runtime.model.verify import VerifyReport, precision_of, verify_idle

# (tokens, context): one token and many, at odd positions.
LENGTHS = ((1, 0), (1, 100), (5, 7), (33, 20), (128, 0))
TIMED = ((1, 100), (64, 0))
MOST_OPS = 2  # that share a kernel and are compared: the first and the last
BOUND = re.compile(r"var<[^>]*>\s*(\w+)")


@dataclass(frozen=True)
class Shader:
    """A kernel of the graph, with all launches that run it."""

    name: str  # its label; with other override constants it is another one
    source: str
    constants: tuple[tuple[str, float], ...]
    steps: tuple[int, ...]
    ops: tuple[int, ...]
    is_changed: bool  # a kept one runs in its place


@dataclass(eq=False)
class Trial:
    """A changed kernel: what the compiler and the checks say of it."""

    shader: str
    source: str
    steps: tuple[int, ...]
    errors: list[ShaderMessage] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)
    goldens: VerifyReport | None = None  # None: it did not get there, or there are none
    times: list[Times] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Return whether it compiles and every check agrees with the kernel it replaces."""
        checked = all(case.ok for case in self.cases)
        return not self.errors and checked and (self.goldens is None or self.goldens.ok)

    def _repr_html_(self) -> str:
        facts = ["✓ all checks agree" if self.ok else "✗ refused"]
        facts += [f"line {each.line}: {each.text}" for each in self.errors]
        facts += [self.goldens.summary] if self.goldens else []
        facts += [f"{t.tokens} tokens: {t.before:.1f} → {t.after:.1f} µs" for t in self.times]
        rows = [
            (
                case.where,
                case.tokens,
                case.context,
                f"{case.relative_rms:.1e}",
                "✓" if case.ok else "✗",
            )
            for case in self.cases
        ]
        head = ("case", "tokens", "context", "relative RMS", "")
        return as_html(self.shader, facts, head, *rows)


class KernelLab:
    """The kernels of one graph, and those that were changed; `kernel_lab` opens it."""

    def __init__(self, target: Model | Graph, inputs: Sequence[Sequence[Any]] = ()) -> None:
        self._target = target
        self.graph = target.graph if isinstance(target, Model) else target
        self._inputs = inputs  # calls of a graph alone

    @property
    def kept(self) -> dict[int, PipelineSpec]:
        """Return the changed kernels that run, by step."""
        return dict(self.graph.variant.pipelines) if self.graph.variant else {}

    @property
    def can_edit(self) -> bool:
        """Return False on the CPU, whose kernels are C."""
        return not self.graph.target.cpu

    def shaders(self) -> list[Shader]:
        """Return the graph's kernels in the order they first run."""
        found: dict[PipelineSpec, list[int]] = {}
        for step, spec in enumerate(self.graph.builder.steps):
            if isinstance(spec, LaunchSpec):
                found.setdefault(spec.pipeline, []).append(step)
        return [self._shader(own, steps) for own, steps in found.items()]

    def _shader(self, own: PipelineSpec, steps: list[int]) -> Shader:
        kept = self.kept.get(steps[0])
        ops = tuple(dict.fromkeys(self.graph.builder.step_ops[step] for step in steps))
        name = own.label
        if own.constants:
            name += " " + " ".join(f"{key}={value:g}" for key, value in own.constants)
        source = kept.source if kept else own.source
        return Shader(name, source, own.constants, tuple(steps), ops, kept is not None)

    def shader(self, name: str) -> Shader:
        """Return a kernel by its name; RequestError names those that there are."""
        every = {each.name: each for each in self.shaders()}
        if name not in every:
            raise RequestError(f"there is no kernel '{name}'; there are {', '.join(every)}")
        return every[name]

    def own_source(self, name: str) -> str:
        """Return the engine's own WGSL of a kernel, whatever was kept."""
        spec = self.graph.builder.steps[self.shader(name).steps[0]]
        assert isinstance(spec, LaunchSpec)
        return spec.pipeline.source

    async def try_source(
        self,
        name: str,
        source: str,
        *,
        op: int | None = None,
        goldens: bool = True,
        progress: Progress = ignore,
    ) -> Trial:
        """Compile, compare with the engine's own kernel, run the goldens, take times.

        It goes into all launches of the kernel, or into those of one op. The model is as it was
        afterwards, whatever came out.
        """
        check_kind(self.graph, "the kernel lab")
        self._check_current()
        shader = self.shader(name)
        steps = tuple(
            step for step in shader.steps if op in (None, self.graph.builder.step_ops[step])
        )
        if not steps:
            raise RequestError(f"op {op} does not launch '{name}'")
        trial = Trial(name, source, steps)
        trial.errors = _misfits(self.own_source(name), source)
        if trial.errors:
            return trial
        try:
            variant = await self.graph.with_kernels(self.kept | self._changed(trial))
        except ShaderError as error:
            trial.errors = error.messages
            return trial
        except GpuValidationError as error:
            trial.errors = [ShaderMessage(0, 0, str(error))]
            return trial
        try:
            await self._check(trial, variant, goldens, progress)
        finally:
            variant.release()
        return trial

    async def _check(
        self, trial: Trial, variant: Variant, goldens: bool, progress: Progress
    ) -> None:
        plans = self.graph.own_plan, variant.plan
        allowed = precision_of(self.graph.target)
        ops = sorted({self.graph.builder.step_ops[step] for step in trial.steps})
        ops = list(dict.fromkeys([ops[0], ops[-1]]))[:MOST_OPS]
        async with running(self._target, 1, 0, self._first_inputs()):
            calls, timed = await self._calls(LENGTHS), await self._calls(TIMED)
            total = len(calls) + len(timed) + int(goldens)
            for done, call in enumerate(calls, start=1):
                for op in ops:
                    case = await compare_op(self.graph, op, trial.steps, call, plans, allowed)
                    trial.cases += [case] if case is not None else []
                if self.graph.state_copies is None or not (call.span and call.span.start):
                    trial.cases.append(await self._compare_results(call, variant))
                progress(done, total)
            for done, call in enumerate(timed, start=len(calls) + 1):
                times = await time_in_turns(self.graph, trial.steps, call, plans)
                trial.times += [times] if times is not None else []
                progress(done, total)
            if goldens and isinstance(self._target, Model):
                trial.goldens = await self._goldens(self._target, variant)
                progress(total, total)

    async def _compare_results(self, call: GraphCall, variant: Variant) -> Case:
        """Compare what the whole graph gives."""
        allowed = precision_of(self.graph.target)
        results = []
        for plan in (None, variant):
            before = self.graph.adopt(plan)
            try:
                results.append((await self.graph.run(call.inputs, [0]))[0])
            finally:
                self.graph.adopt(before)
        wanted, got = results
        return compare_arrays("logits", call, got, wanted, allowed)

    async def _goldens(self, model: Model, variant: Variant) -> VerifyReport | None:
        before = self.graph.adopt(variant)
        try:
            return await verify_idle(model)
        except NoGoldensError:
            return None
        finally:
            self.graph.adopt(before)

    async def keep(self, trial: Trial) -> None:
        """Let a changed kernel run from now on, until a reload; refused if a check failed."""
        if not trial.ok:
            raise RequestError(
                f"the changed '{trial.shader}' is refused: it does not compile, or does not "
                "compute what the engine's own does"
            )
        await self._adopt(self.kept | self._changed(trial))

    async def revert(self, name: str | None = None) -> None:
        """Bring the engine's own kernels back: all of them, or one."""
        gone = set(self.kept) if name is None else set(self.shader(name).steps)
        await self._adopt({step: spec for step, spec in self.kept.items() if step not in gone})

    def export(self) -> dict[str, str]:
        """Return the kept kernels as WGSL files: text by file name."""
        return {
            f"{re.sub(r'[^A-Za-z0-9]+', '_', each.name)}.wgsl": each.source
            for each in self.shaders()
            if each.is_changed
        }

    async def _adopt(self, pipelines: Mapping[int, PipelineSpec]) -> None:
        self._check_current()
        async with running(self._target, 1, 0, self._first_inputs()):
            variant = await self.graph.with_kernels(pipelines) if pipelines else None
            gone = self.graph.adopt(variant)
            if isinstance(self._target, Model):
                self._target.session.drop_loop()  # it has recorded the kernels from before
                Workspace.of(self._target).clear()  # so have graphs with hooks
            if gone is not None:
                gone.release()

    def _check_current(self) -> None:
        check_plain(self._target)
        if isinstance(self._target, Model) and self._target.graph is not self.graph:
            raise RequestError(
                "the model has another graph by now: open its lab with kernel_lab(model)"
            )

    def _changed(self, trial: Trial) -> dict[int, PipelineSpec]:
        found = {}
        for step in trial.steps:
            spec = self.graph.builder.steps[step]
            assert isinstance(spec, LaunchSpec)
            found[step] = replace(
                spec.pipeline, label=f"{spec.pipeline.label} (changed)", source=trial.source
            )
        return found

    def _first_inputs(self) -> Sequence[Any] | None:
        return self._inputs[0] if self._inputs else None

    async def _calls(self, lengths: Iterable[tuple[int, int]]) -> list[GraphCall]:
        if not isinstance(self._target, Model):
            return [GraphCall(list(inputs)) for inputs in self._inputs]
        model = self._target
        fitting = calls_that_fit(tuple(lengths), model.max_chunk, model.context)
        return [(await calls_for(model, *each, None))[1][0] for each in fitting]


def kernel_lab(target: Model | Graph, inputs: Sequence[Sequence[Any]] = ()) -> KernelLab:
    """Return the lab of a model, or of a graph with the inputs of some calls to compare by."""
    return KernelLab(target, inputs)


def _misfits(own: str, changed: str) -> list[ShaderMessage]:
    """Return what Python could not launch, since bindings and parameters are its own."""
    found = []
    wanted, given = (BOUND.findall(each) for each in (_module_scope(own), _module_scope(changed)))
    if wanted != given:
        line = _line_of(changed, r"@binding\(")
        found.append(
            ShaderMessage(line, 1, f"the bindings must stay as they are: {', '.join(wanted)}")
        )
    for member, before in zip(
        members_of(changed, "Params"), members_of(own, "Params"), strict=False
    ):
        if member != before:
            line = _line_of(changed, rf"\b{member.name}\s*:")
            text = f"Python packs the parameters: {before.name}: {before.type} stands here"
            found.append(ShaderMessage(line, 1, text))
            break
    else:
        if len(members_of(changed, "Params")) != len(members_of(own, "Params")):
            line = _line_of(changed, r"struct Params")
            found.append(ShaderMessage(line, 1, "struct Params must have the members it had"))
    return found


def _module_scope(source: str) -> str:
    return "\n".join(line for line in source.splitlines() if "@binding(" in line)


def _line_of(source: str, pattern: str) -> int:
    found = re.search(pattern, source)
    return source.count("\n", 0, found.start()) + 1 if found else 0
