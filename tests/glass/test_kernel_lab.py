"""The kernel lab: a changed kernel is compiled, compared, timed, kept or refused."""

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inpage import glass
from py_runtime.base.errors import GraphError, RequestError
from py_runtime.glass.edits import Edit
from py_runtime.glass.hooked import load_hooked
from py_runtime.glass.kernel_lab import Trial, kernel_lab
from py_runtime.glass.own_ops import Substitution, own_op, replace
from py_runtime.glass.runs import run_with_cache
from py_runtime.glass.steering import steered
from py_runtime.glass.workspace import Workspace, close
from py_runtime.graph import Graph
from py_runtime.model import Model
from tests.glass.room import NORM, OWN_NORM, PROMPT, greedy, own_norm, with_model
from tests.runners import CpuRunner, NativeRunner
from tools.files import ROOT

SHADER = "reduce/rms_norm"
HOOK = "blocks.0.hook_resid_post"
PRODUCT = "value *= weight[column];"
ROOT_OF = "inverseSqrt(sum_of_squares / f32(params.width) + params.eps)"


def test_a_broken_shader_reports_its_line_and_changes_nothing(
    native: NativeRunner, toy_model: Path
) -> None:
    async def look(model: Model) -> list[tuple[Trial, int]]:
        lab, found = kernel_lab(model), []
        own = lab.own_source(SHADER)
        for old, new in (
            ("let scale =", "let scale ! ="),
            ("  eps: f32", "  eps: u32"),
            ("> x:", "> y:"),
        ):
            broken = own.replace(old, new, 1)
            line = 1 + next(at for at, text in enumerate(broken.splitlines()) if new in text)
            found.append((await lab.try_source(SHADER, broken), line))
        assert model.graph.variant is None
        return found

    for trial, line in with_model(native, toy_model, look):
        assert not trial.ok
        assert trial.errors
        assert trial.errors[0].line == line or "bindings" in trial.errors[0].text
        assert not trial.cases


def test_a_wrong_kernel_is_refused(native: NativeRunner, toy_model: Path) -> None:
    async def look(model: Model) -> Trial:
        lab = kernel_lab(model)
        wrong = lab.own_source(SHADER).replace(PRODUCT, PRODUCT.replace("]", "] * 1.05"))
        trial = await lab.try_source(SHADER, wrong)
        with pytest.raises(RequestError, match="refused"):
            await lab.keep(trial)
        assert model.graph.variant is None
        return trial

    trial = with_model(native, toy_model, look)
    assert not trial.ok
    assert trial.goldens is not None
    assert not trial.goldens.ok
    assert not all(case.ok for case in trial.cases)


def test_a_kernel_that_writes_nothing_is_seen(native: NativeRunner, toy_model: Path) -> None:
    async def look(model: Model) -> Trial:
        lab = kernel_lab(model)
        lazy = lab.own_source(SHADER).replace("row >= params.rows", "row >= 0u")
        return await lab.try_source(SHADER, lazy, goldens=False)

    trial = with_model(native, toy_model, look)
    assert not any(case.ok for case in trial.cases if case.where != "logits")


def test_a_right_kernel_is_kept_until_it_is_taken_back(
    native: NativeRunner, toy_model: Path
) -> None:
    async def look(model: Model) -> Trial:
        lab, before = kernel_lab(model), await greedy(model)
        other = lab.own_source(SHADER).replace(
            ROOT_OF, ROOT_OF.replace("inverseSqrt", "1.0 / sqrt")
        )
        buffers = native.device.counters.buffers_alive
        trial = await lab.try_source(SHADER, other)
        await lab.keep(trial)
        assert model.graph.variant is not None
        assert lab.shader(SHADER).is_changed
        assert lab.export() == {"reduce_rms_norm.wgsl": other}
        assert await greedy(model) == before
        assert [changed for changed, _ in await hooked_and_steered(model)] == [True] * 2
        again = await lab.try_source(SHADER, other + "\n", goldens=False)
        assert again.ok, "also beside one that is kept"
        await lab.revert()
        assert lab.export() == {}
        assert [changed for changed, _ in await hooked_and_steered(model)] == [False] * 2
        await close(model)
        assert native.device.counters.buffers_alive <= buffers
        return trial

    trial = with_model(native, toy_model, look)
    assert trial.ok
    assert trial.goldens is not None
    assert trial.goldens.ok
    assert {(case.tokens, case.context) for case in trial.cases} >= {(1, 0), (5, 7), (33, 20)}
    assert all(times.before > 0 and times.after > 0 for times in trial.times)


def test_every_kernel_can_stand_in_for_itself(native: NativeRunner, toy_model: Path) -> None:
    async def look(model: Model) -> dict[str, Trial]:
        lab = kernel_lab(model)
        return {
            each.name: await lab.try_source(
                each.name, f"{each.source}\n// the same", op=each.ops[-1], goldens=False
            )
            for each in lab.shaders()
        }

    trials = with_model(native, toy_model, look)
    assert len(trials) > 5
    for name, trial in trials.items():
        assert trial.ok, (name, trial.errors, [case for case in trial.cases if not case.ok])
        of_ops = [case for case in trial.cases if case.where != "logits"]
        assert of_ops or "gemm" in name, name


def test_on_the_cpu_it_can_be_read_only(cpu: CpuRunner, toy_model: Path) -> None:
    async def look(model: Model) -> None:
        lab = kernel_lab(model)
        assert not lab.can_edit
        name = lab.shaders()[0].name
        with pytest.raises(GraphError, match="on the CPU kernels are C"):
            await lab.try_source(name, lab.own_source(name))
        with pytest.raises(RequestError, match="there is no kernel 'nothing'"):
            lab.own_source("nothing")

    with_model(cpu, toy_model, look)


async def hooked_and_steered(model: Model) -> list[tuple[bool, set[str]]]:
    """Return whether the graphs of hooks and of edits have changed kernels, and their ops.

    What they give is what the model's own gives.
    """

    def facts(graph: Graph) -> tuple[bool, set[str]]:
        return graph.variant is not None, {call.name for call in graph.program.ops}

    wanted = await model.prefill(PROMPT)
    logits, _ = await run_with_cache(model, PROMPT, HOOK)
    assert logits is not None
    np.testing.assert_allclose(logits[0, -1], wanted.reshape(-1), rtol=1e-3, atol=1e-3)
    hooked = await load_hooked(model, Workspace.of(model), [Workspace.of(model).points[HOOK].value])
    async with steered(model, [Edit(HOOK, "scale", strength=1)]):
        np.testing.assert_allclose(await model.prefill(PROMPT), wanted, rtol=1e-3, atol=1e-3)
        return [facts(hooked.graph), facts(model.graph)]


# Ops of one's own --------------------------------------------------------------------------------


def test_an_own_norm_replaces_the_engines(native: NativeRunner, toy_model: Path) -> None:
    async def look(model: Model) -> Any:
        before, graph = await greedy(model), model.graph
        done = await replace(model, [NORM], own_norm())
        assert model.graph is not graph
        assert await greedy(model) == before
        names = [call.name for call in model.graph.program.ops]
        assert names.count("users.OwnNorm") == 5
        assert NORM not in names
        assert all("users.OwnNorm" in names for _, names in await hooked_and_steered(model))
        await done.revert()
        assert not any("users.OwnNorm" in names for _, names in await hooked_and_steered(model))
        assert model.graph is graph
        return done

    done = with_model(native, toy_model, look)
    assert done.ok
    assert done.matches == 5
    assert done.goldens.ok


def test_an_own_op_that_computes_something_else_is_refused(
    native: NativeRunner, toy_model: Path
) -> None:
    async def look(model: Model) -> Any:
        graph, buffers = model.graph, native.device.counters.buffers_alive
        done = await replace(model, [NORM], own_norm(1.05))
        assert model.graph is graph
        assert native.device.counters.buffers_alive <= buffers
        with pytest.raises(GraphError, match="nothing matches"):
            await replace(model, [NORM, NORM], own_norm())
        with pytest.raises(RequestError, match=r"there is no op 'aten\.nothing'"):
            await replace(model, ["aten.nothing"], own_norm())
        return done

    done = with_model(native, toy_model, look)
    assert not done.ok
    assert not done.goldens.ok


def test_a_run_of_ops_is_found_by_data_flow(native: NativeRunner, toy_model: Path) -> None:
    own_op(args="x b out", wgsl=OWN_NORM.replace("FACTOR", "1.0"), name="swish")(own_norm())

    async def look(model: Model) -> list[tuple[str, int]]:
        swish = Substitution(("aten.silu.default", "aten.mul.Tensor"), "users.swish")
        program = swish(model.graph.written, model.graph.target)
        assert swish.matches == 2
        assert swish.among(model.graph)[0] is swish
        return [(call.name, len(call.args)) for call in program.ops]

    found = with_model(native, toy_model, look)
    assert found.count(("users.swish", 3)) == 2
    assert "aten.silu.default" not in dict(found)


def test_the_guides_op_runs(native: NativeRunner, toy_model: Path) -> None:
    guide = (ROOT / "docs/glass.md").read_text(encoding="utf-8").partition("### Ops of your own")[2]
    block = guide.split("```")[1].removeprefix("python")
    code = compile(block, "glass.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    async def look(model: Model) -> tuple[bool, int]:
        namespace: dict[str, Any] = {"glass": glass, "model": model}
        await eval(code, namespace)
        return namespace["done"].ok, namespace["done"].matches

    assert with_model(native, toy_model, look) == (True, 5)
