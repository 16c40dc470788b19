"""The hook points of a decoder, by the names that TransformerLens gives them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from py_runtime.base.errors import RequestError
from py_runtime.glass.anatomy import ATTENTION, Anatomy, Attention, Block
from py_runtime.program import OpCall

VALUE = "value"  # as an op makes it
NORMALISED = "normalised"  # a norm's rows, before its weight
SCALE = "scale"  # what a norm divides rows by
SCORES, PATTERN = "scores", "pattern"  # of attention: [1, H, queries, keys]
POSITIONS = "pos"

NamesFilter = None | str | tuple[str, int] | Sequence[str] | Callable[[str], bool]
# TransformerLens' short names: cache["resid_pre", 3], cache["pattern", 0].
SHORT = {
    "q": "attn.hook_q",
    "k": "attn.hook_k",
    "v": "attn.hook_v",
    "z": "attn.hook_z",
    "rot_q": "attn.hook_rot_q",
    "rot_k": "attn.hook_rot_k",
    "pattern": "attn.hook_pattern",
    "attn": "attn.hook_pattern",
    "attn_scores": "attn.hook_attn_scores",
    "pre": "mlp.hook_pre",
    "pre_linear": "mlp.hook_pre_linear",
    "post": "mlp.hook_post",
    "mlp_post": "mlp.hook_post",
    "normalized1": "ln1.hook_normalized",
    "normalized2": "ln2.hook_normalized",
    "scale1": "ln1.hook_scale",
    "scale2": "ln2.hook_scale",
}


@dataclass(frozen=True)
class HookPoint:
    """A place where activations are read and changed."""

    name: str
    kind: str
    value: int  # the tensor that it is, or is computed from
    shape: tuple[int | str, ...]  # with the batch, which is 1
    layer: int | None = None
    norm: OpCall | None = None
    attention: Attention | None = None


def points_of(anatomy: Anatomy) -> dict[str, HookPoint]:
    """Return all hook points by their names, in the order in which a run comes by."""
    found = [_value(anatomy, "hook_embed", anatomy.embed)]
    for number, block in enumerate(anatomy.blocks):
        found += _of_block(anatomy, number, block)
    if anatomy.norm is not None:
        found += _of_norm(anatomy, "ln_final", anatomy.norm, None, anatomy.rows)
    return {point.name: point for point in found}


def _of_block(anatomy: Anatomy, number: int, block: Block) -> list[HookPoint]:
    path = f"blocks.{number}"

    def value(name: str, value_id: int) -> HookPoint:
        return _value(anatomy, f"{path}.{name}", value_id, number)

    found = [value("hook_resid_pre", block.pre)]
    mixer = block.mixer
    if mixer is not None:
        if mixer.norm is not None:
            found += _of_norm(anatomy, f"{path}.ln1", mixer.norm, number)
        if mixer.attention is not None:
            found += _of_attention(anatomy, f"{path}.attn", number, mixer.attention)
        own = "hook_attn_out" if mixer.kind == ATTENTION else "hook_mixer_out"
        found.append(value(own, mixer.out))
        if block.others:
            found.append(value("hook_resid_mid", mixer.after))
    for at, branch in enumerate(block.others):
        if at == 0 and branch.norm is not None:
            found += _of_norm(anatomy, f"{path}.ln2", branch.norm, number)
        mlp = branch.mlp
        if at == 0 and mlp is not None:
            hidden = {"pre": mlp.pre, "pre_linear": mlp.linear, "post": mlp.post}
            for name, value_id in hidden.items():
                if value_id is not None:
                    found.append(value(f"mlp.hook_{name}", value_id))
        is_shared = at > 0 and block.others[0].kind == "experts"
        name = "shared" if is_shared else "per_layer"
        found.append(value("hook_mlp_out" if at == 0 else f"hook_{name}_out", branch.out))
    found.append(value("hook_resid_post", block.post))
    return found


def _of_attention(
    anatomy: Anatomy, path: str, number: int, attention: Attention
) -> list[HookPoint]:
    values = {"hook_q": attention.raw_q, "hook_k": attention.raw_k, "hook_v": attention.v}
    rotated = {"hook_rot_q": attention.q, "hook_rot_k": attention.k}
    for name, value_id in rotated.items():
        if value_id not in values.values():
            values[name] = value_id
    found = [
        _value(anatomy, f"{path}.{name}", value_id, number)
        for name, value_id in values.items()
        if value_id is not None
    ]
    heads = anatomy.flow.dims(attention.q)[-2]
    for name, kind in (("hook_attn_scores", SCORES), ("hook_pattern", PATTERN)):
        shape = (1, heads, POSITIONS, POSITIONS)
        point = HookPoint(f"{path}.{name}", kind, attention.z, shape, number, attention=attention)
        found.append(point)
    return [*found, _value(anatomy, f"{path}.hook_z", attention.z, number)]


def _of_norm(
    anatomy: Anatomy, path: str, norm: OpCall, number: int | None, rows: int | None = None
) -> list[HookPoint]:
    x = norm.args[0] if rows is None else rows
    width = anatomy.flow.dims(x)[-1]
    return [
        HookPoint(f"{path}.hook_scale", SCALE, x, (1, POSITIONS, 1), number, norm),
        HookPoint(f"{path}.hook_normalized", NORMALISED, x, (1, POSITIONS, width), number, norm),
    ]


def _value(anatomy: Anatomy, name: str, value_id: int, layer: int | None = None) -> HookPoint:
    dims = anatomy.flow.dims(value_id)
    rest = dims[2:] if len(dims) > 2 else dims[1:]  # .pte: [S, W]
    return HookPoint(name, VALUE, value_id, (1, POSITIONS, *rest), layer)


# Names -------------------------------------------------------------------------------------------


def chosen(points: dict[str, HookPoint], names: NamesFilter) -> list[HookPoint]:
    """Return the points that a filter of TransformerLens' kinds chooses; None chooses all.

    A name may be a pattern, as `blocks.*.hook_resid_post`.
    """
    if names is None:
        return list(points.values())
    if callable(names):
        return [point for name, point in points.items() if names(name)]
    if isinstance(names, tuple) and any(isinstance(part, int) for part in names):
        return [point_named(points, names)]  # the short form of one
    found: dict[str, HookPoint] = {}
    for name in [names] if isinstance(names, str) else names:
        full = full_name(name)
        matching = [n for n in points if fnmatchcase(n, full)] if "*" in full else [full]
        for each in matching:
            found[each] = point_named(points, each)
        if not matching:
            raise unknown_name(points, name)
    return list(found.values())


def point_named(points: dict[str, HookPoint], name: object) -> HookPoint:
    """Return the point of this name; RequestError says which there are."""
    if full_name(name) not in points:
        raise unknown_name(points, name)
    return points[full_name(name)]


def full_name(name: object) -> str:
    """Return a point's name from its short form: ("resid_pre", 3) or "resid_pre3"."""
    if isinstance(name, tuple) and name:
        short, *rest = name
        layer = next((part for part in rest if isinstance(part, int)), None)
    elif isinstance(name, str):
        matched = re.fullmatch(r"([a-z_]+?)(\d{1,6})", name)
        short, layer = (matched[1], int(matched[2])) if matched else (name, None)
    else:
        raise RequestError(f"{name!r:.100} is not the name of a hook", "names")
    if layer is None:
        return "hook_embed" if short == "embed" else str(short)
    return f"blocks.{layer}.{SHORT.get(short, f'hook_{short}')}"


def unknown_name(points: dict[str, HookPoint], name: object) -> RequestError:
    """Return the error for a name that no point has."""
    layers = sorted({point.layer for point in points.values() if point.layer is not None})
    some = [n for n in points if not n.startswith("blocks.")]
    some += [n for n in points if n.startswith(f"blocks.{layers[0]}.")] if layers else []
    return RequestError(
        f"this model has no hook {name!r:.100}; its layers are 0 to {len(layers) - 1}, and it has "
        f"{', '.join(some)}",
        "names",
    )
