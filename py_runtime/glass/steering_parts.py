"""The parts of a model that can be turned off, by short names, as edits."""

import re
from collections.abc import Mapping

from py_runtime.base.errors import RequestError
from py_runtime.base.short_texts import short
from py_runtime.glass.edits import Edit
from py_runtime.glass.points import HookPoint

# "layer 3", "attention 3", "mlp 3", "head 3.1", "neuron 3.100"
PART = re.compile(r"(layer|attention|mlp|head|neuron) (\d{1,5})(?:\.(\d{1,7}))?")
MIXERS, MLPS = ("hook_attn_out", "hook_mixer_out"), ("hook_mlp_out", "hook_shared_out")
HOOKS = {
    "layer": (*MIXERS, *MLPS, "hook_per_layer_out"),
    "attention": MIXERS,
    "mlp": MLPS,
    "head": ("attn.hook_z",),
    "neuron": ("mlp.hook_post",),
}
NUMBERED = ("head", "neuron")


def part_edits(points: Mapping[str, HookPoint], part: str) -> list[Edit]:
    """Return the edits that turn a part off; their name is the part's."""
    match = PART.fullmatch(part) if isinstance(part, str) else None
    if match is None or (match[3] is None) != (match[1] not in NUMBERED):
        raise RequestError(
            f"{short(part)} is no part: write 'layer 3', 'attention 3', 'mlp 3', 'head 3.1' or "
            "'neuron 3.100'",
            "parts",
        )
    kind, layer = match[1], int(match[2])
    found = _points(points, kind, layer)
    if not found:
        raise RequestError(f"this model has no {short(part)}", "parts")
    if kind not in NUMBERED:
        return [Edit(point.name, "ablate", name=part) for point in found]
    number, count = int(match[3]), _count(found[0])
    if number >= count:
        raise RequestError(f"layer {layer} has {count} of them, from 0 on", "parts")
    hook, chosen = found[0].name, (number,)
    if kind == "head":
        return [Edit(hook, "ablate", heads=chosen, name=part)]
    return [Edit(hook, "ablate", neurons=chosen, name=part)]


def parts_of(points: Mapping[str, HookPoint], layer: int) -> dict[str, int]:
    """Return which parts a layer has, and how many of each."""
    found = {kind: _points(points, kind, layer) for kind in HOOKS}
    return {kind: _count(own[0]) if kind in NUMBERED else 1 for kind, own in found.items() if own}


def _points(points: Mapping[str, HookPoint], kind: str, layer: int) -> list[HookPoint]:
    names = (f"blocks.{layer}.{hook}" for hook in HOOKS[kind])
    return [points[name] for name in names if name in points]


def _count(point: HookPoint) -> int:
    return int(point.shape[2])  # [1, S, heads, width], or [1, S, neurons]
