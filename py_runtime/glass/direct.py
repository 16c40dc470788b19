"""The direct way from what is added to the residual stream to the logits that it adds to."""

from typing import Any

import numpy as np

from py_runtime.glass.anatomy import Anatomy
from py_runtime.glass.given import texts_of
from py_runtime.glass.programs import part, renamed
from py_runtime.graph import Graph
from py_runtime.model import Model
from py_runtime.program import OpCall, TensorValue, op_names
from py_runtime.sampling.narrow import largest

ROWS = 8  # vectors that are looked at together


def direct_calls(anatomy: Anatomy, added: int) -> list[OpCall]:
    """Return the calls from a value to logits: the last norm's weight, but not its division."""
    row, norm, rest = anatomy.select.args[-1], anatomy.norm, anatomy.tail
    if norm is None:
        return [renamed(call, {row: added}) for call in rest]
    normed = norm.args[-1]
    weighted: list[OpCall] = []
    if isinstance(anatomy.program.values[norm.args[1]], TensorValue):
        weighted = [OpCall(op_names.MUL, (added, norm.args[1], normed))]
    else:
        rest = tuple(renamed(call, {normed: added}) for call in rest)
    return [*weighted, *(call for call in rest if call.name != op_names.RMS_NORM)]


async def load_direct(base: Graph, anatomy: Anatomy) -> Graph:
    """Return a graph from vectors [N, W] of the stream to logits [N, V], of ROWS at most."""
    row = anatomy.select.args[-1]
    calls = direct_calls(anatomy, row)
    program = part(anatomy.program, "direct effect", ROWS, [row], calls, anatomy.program.outputs[0])
    return await Graph.load(base.device, program, base=base)


def best_tokens(model: Model, logits: np.ndarray, k: int) -> list[dict[str, Any]]:
    """List the tokens of the greatest logits [V], the greatest first."""
    near = largest(logits, k)
    best = near[np.argsort(-logits[near], kind="stable")[:k]].tolist()
    return [
        {"token": token, "text": text, "logit": float(logits[token])}
        for token, text in zip(best, texts_of(model, best), strict=True)
    ]
