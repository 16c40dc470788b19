"""Steered answers are those that torch writes with the same edit, token for token."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tests.glass.conftest import Exported
from tests.glass.torch_model import layers_of
from tests.runners import CpuRunner, NativeRunner, Runner

pytestmark = pytest.mark.torch

CASES = "tests.glass.steer_cases"
PROMPT = np.random.default_rng(1).integers(3, 300, 12).tolist()
COUNT = 10
WIDTH, HEADS, HEAD_DIM, HIDDEN = 64, 4, 16, 160
VECTOR = np.random.default_rng(2).standard_normal(WIDTH).astype(np.float32)
FAMILIES = ["smollm2", "lfm2", "qwen3.5", "gemma 2"]

Change = Callable[[torch.Tensor, int], torch.Tensor]  # (hidden [S, ...], prompt's length)


def torch_answer(model: Any, prompt: list[int], count: int) -> list[int]:
    tokens = list(prompt)
    for _ in range(count):
        with torch.no_grad():
            tokens.append(
                int(model(torch.tensor([tokens]), use_cache=False).logits[0, -1].argmax())
            )
    return tokens[len(prompt) :]


def with_change(module: Any, change: Callable[[torch.Tensor], None], before: bool = False) -> Any:
    """Change a module's output, or what it is given, in place."""
    if before:

        def change_given(_module: Any, args: Any) -> Any:
            x = args[0].clone()
            change(x[0])
            return (x, *args[1:])

        return module.register_forward_pre_hook(change_given)

    def change_output(_module: Any, _args: Any, out: Any) -> Any:
        x = (out[0] if isinstance(out, tuple) else out).clone()
        change(x[0])
        return (x, *out[1:]) if isinstance(out, tuple) else x

    return module.register_forward_hook(change_output)


STEPS: dict[str, dict[str, Any]] = {
    "added": {"hook": "blocks.0.hook_resid_post", "vector": VECTOR, "strength": 2.5},
    "answer": {
        "hook": "blocks.0.hook_resid_post",
        "vector": VECTOR,
        "positions": "generated",
        "strength": 4,
    },
    "prompt": {
        "hook": "blocks.1.hook_resid_pre",
        "vector": VECTOR,
        "positions": "prompt",
        "strength": 4,
    },
    "replaced": {
        "hook": "blocks.0.hook_resid_post",
        "kind": "replace",
        "vector": np.stack([VECTOR, -VECTOR]),
        "positions": [3, 5],
    },
    "head": {"hook": "blocks.1.attn.hook_z", "kind": "ablate", "heads": [2]},
    "neurons": {
        "hook": "blocks.0.mlp.hook_post",
        "kind": "scale",
        "neurons": [3, 50, 51],
        "strength": -30.0,
    },
    "mlp": {"hook": "blocks.1.hook_mlp_out", "kind": "ablate"},
    "queries": {"hook": "blocks.1.attn.hook_q", "kind": "scale", "strength": -2.0},
    "norm": {"hook": "blocks.1.ln1.hook_normalized", "vector": VECTOR, "strength": 1.5},
}


def torch_edits(model: Any) -> dict[str, tuple[Any, Callable[[torch.Tensor], None], bool]]:
    """Return the same edits for torch: (module, change in place, whether of what it is given)."""
    layers, vector, border = layers_of(model), torch.tensor(VECTOR), len(PROMPT)
    norm = layers[1].input_layernorm.weight.detach()

    def put(x: torch.Tensor) -> None:
        x[3], x[4] = vector, -vector

    def scale(x: torch.Tensor) -> None:
        x[:, [3, 50, 51]] *= -30

    return {
        "added": (layers[0], lambda x: x.add_(2.5 * vector), False),
        "answer": (layers[0], lambda x: x[border:].add_(4 * vector), False),
        "prompt": (layers[0], lambda x: x[:border].add_(4 * vector), False),
        "replaced": (layers[0], put, False),
        "head": (layers[1].self_attn.o_proj, lambda x: x[:, 32:48].zero_(), True),
        "neurons": (layers[0].mlp.down_proj, scale, True),
        "mlp": (layers[1].mlp, lambda x: x.zero_(), False),
        "queries": (layers[1].self_attn.q_proj, lambda x: x.mul_(-2), False),
        "norm": (layers[1].input_layernorm, lambda x: x.add_(1.5 * vector * norm), False),
    }


def check_answers(runner: Runner, model: Any, where: str) -> None:
    edits = [[each] for each in STEPS.values()]
    both = [STEPS["added"], STEPS["head"]]
    found = runner.run(
        CASES, "answers", where=where, prompt=PROMPT, edits=[*edits, both], count=COUNT
    )
    plain = torch_answer(model, PROMPT, COUNT)
    assert found["before"] == found["after"] == plain
    assert found["left"] == 0
    changes = torch_edits(model)
    differing = 0
    for name, got in zip(STEPS, found["found"], strict=False):
        handle = with_change(*changes[name])
        assert got == torch_answer(model, PROMPT, COUNT), name
        differing += got != plain
        handle.remove()
    assert differing > len(STEPS) / 2, "edits matter"
    handles = [with_change(*changes[name]) for name in ("added", "head")]
    assert found["found"][-1] == torch_answer(model, PROMPT, COUNT)
    for handle in handles:
        handle.remove()


def test_steered_answers_are_torchs(exported: Exported, cpu: CpuRunner) -> None:
    check_answers(cpu, *exported("smollm2"))


def test_on_a_gpu(exported: Exported, native: NativeRunner) -> None:
    check_answers(native, *exported("smollm2"))


@pytest.mark.parametrize("family", FAMILIES)
def test_of_each_mixer(exported: Exported, cpu: CpuRunner, family: str) -> None:
    model, where = exported(family)
    edit = {"hook": "blocks.1.hook_resid_pre", "vector": VECTOR[:WIDTH], "strength": 2.0}
    found = cpu.run(CASES, "answers", where=where, prompt=PROMPT, edits=[[edit]], count=COUNT)
    assert found["before"] == found["after"] == torch_answer(model, PROMPT, COUNT)
    handle = with_change(layers_of(model)[0], lambda x: x.add_(2 * torch.tensor(VECTOR)))
    assert found["found"][0] == torch_answer(model, PROMPT, COUNT)
    handle.remove()


@pytest.mark.parametrize("positions", ["all", "prompt", "generated"])
@pytest.mark.parametrize("family", ["smollm2", "lfm2"])
def test_caches_follow_what_changed(
    exported: Exported, cpu: CpuRunner, family: str, positions: str
) -> None:
    model, where = exported(family)
    hook = "blocks.0.hook_resid_post"
    edit = {"hook": hook, "vector": VECTOR, "strength": 3.0, "positions": positions}
    found = cpu.run(CASES, "turns", where=where, prompt=PROMPT, edit=edit, count=COUNT)
    assert found["second"] == found["anew"]
    assert found["calmed"] == found["cleared"]
    plain, steered = found["dispatches"]
    assert steered == plain + 1, "one edited hook takes one dispatch more, and no more calls"
    steered_rows: list[torch.Tensor] = []  # hidden_states may be those from before the change

    def change(x: torch.Tensor) -> None:
        steered_rows.append(x.add_(3 * torch.tensor(VECTOR)))

    handle = with_change(layers_of(model)[0], change)
    with torch.no_grad():
        model(torch.tensor([PROMPT]), use_cache=False)
    handle.remove()
    if positions == "all":  # views see the steered model
        np.testing.assert_allclose(found["cached"][0], steered_rows[0], rtol=1e-3, atol=1e-4)


def test_a_strength_changes_in_the_middle_of_an_answer(exported: Exported, cpu: CpuRunner) -> None:
    model, where = exported("smollm2")
    edit = {
        "hook": "blocks.0.hook_resid_post",
        "vector": VECTOR,
        "strength": 1.0,
        "name": "mood",
    }
    at = 4
    found = cpu.run(
        CASES, "while_writing", where=where, prompt=PROMPT, edit=edit, count=COUNT, at=at
    )
    # The token that came last is computed on with the new strength; those before are not again.
    border = len(PROMPT) + at - 1

    def change(x: torch.Tensor) -> None:
        x[:border] += torch.tensor(VECTOR)
        x[border:] += 3 * torch.tensor(VECTOR)

    handle = with_change(layers_of(model)[0], change)
    wanted = torch_answer(model, [*PROMPT, *found[:at]], COUNT - at)
    handle.remove()
    assert found[at:] == wanted


def test_edits_outlive_a_lost_device(exported: Exported, cpu: CpuRunner) -> None:
    _, where = exported("smollm2")
    edit = {"hook": "blocks.0.hook_resid_post", "vector": VECTOR, "strength": 3.0}
    first, second = cpu.run(
        CASES, "after_a_loss", where=where, prompt=PROMPT, edit=edit, count=COUNT
    )
    assert first == second
