"""The place of each op in the model it came from: its module, its layer, and its line of torch.

An op's module is the one that its constants and states are named after; ops without any lie between
their neighbours in the flow of data.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from weakref import WeakKeyDictionary

from py_runtime.graph import Graph
from py_runtime.ops.registry import REGISTRY
from py_runtime.passes import run_passes
from py_runtime.program import OpCall, Program, TensorValue

EMBEDDING, HEAD = "embedding", "head"  # the sections before and behind the layers
NUMBERED = re.compile(r"(?:^|[._])(?:layers|layer|blocks|block|blk|h)[._](\d+)(?=[._]|$)")
IN_MODULE = re.compile(r"^in ([\w.]+)")
STORED = re.compile(r"(?:inpage|et_vk)\.(linear|embedding)_(\w+)")
# What PyTorch calls it, where that is not the op's own name.
IN_TORCH = {
    "aten.linear": "nn.functional.linear(x, weight, bias)",
    "et_vk.rms_norm": "nn.functional.rms_norm(x, weight.shape, weight, eps)",
    "aten.silu": "nn.functional.silu(x)",
    "aten.gelu": "nn.functional.gelu(x, approximate)",
    "aten.embedding": "nn.functional.embedding(tokens, weight)",
    "aten.view": "x.view(dims)",
    "aten.view_copy": "x.view(dims)",
    "aten.add": "a + b",
    "aten.mul": "a * b",
    "aten.sigmoid": "x.sigmoid()",
    "aten.tanh": "x.tanh()",
    "aten.div": "a / b",
    "aten.select_copy": "x.select(dim, index)",
    "sym_size": "x.shape[dim]",
    "et_vk.select_as_symint": "x[index].item()",
    "et_vk.apply_rotary_emb_hf": "apply_rotary_pos_emb(q, k, cos, sin)",
    "et_vk.apply_rotary_emb": "apply_rotary_emb(q, k, freqs_cos, freqs_sin)",
    "sdpa_with_kv_cache": "cache[start:start + length] = k, v; "
    "nn.functional.scaled_dot_product_attention(q, k_cache, v_cache)",
}


@dataclass(frozen=True)
class Place:
    """The place of an op in the model."""

    module: str  # its path, as "layers.3.self_attn.q_proj"; "" where it is not known
    section: str  # EMBEDDING, "layer 3", …, HEAD; "" in a graph without layers
    source: str  # of the exporter, or else spelled as torch would

    @property
    def layer(self) -> int | None:
        _, _, number = self.section.partition("layer ")
        return int(number) if number else None


class Places:
    """The places of all ops of a program, before passes, and of what passes made of them."""

    def __init__(self, graph: Graph) -> None:
        self.program = graph.written
        self.modules = _modules(self.program)
        self.before = [
            Place(module, section, call.source or _spelled(call, module))
            for call, module, section in zip(
                self.program.ops, self.modules, _sections(self.modules), strict=True
            )
        ]
        self._graph_passes = graph.target, graph.passes
        self._fused = graph.program

    @cached_property
    def origins(self) -> list[tuple[int, ...]]:
        """Return the ops before the passes that each op of the running program came from."""
        tagged = tuple(replace(call, source=f"{at}") for at, call in enumerate(self.program.ops))
        target, passes = self._graph_passes
        found = run_passes(replace(self.program, ops=tagged), target, passes)
        assert len(found.ops) == len(self._fused.ops), "passes see the same program again"
        return [tuple(sorted(map(int, call.source.split()))) for call in found.ops]

    @cached_property
    def after(self) -> list[Place]:
        """Return the place of each op of the running program; its sources are a line each."""
        places = []
        for origin in self.origins:
            parts = [self.before[at] for at in origin]
            # What was folded into it may belong to the layer before.
            section = next((part.section for part in reversed(parts) if part.section), "")
            modules = [part.module for part in parts if part.module and part.section == section]
            source = "\n".join(dict.fromkeys(part.source for part in parts))
            places.append(Place(_common(modules), section, source))
        return places

    @property
    def sections(self) -> list[str]:
        """Return the sections in their order."""
        return list(dict.fromkeys(place.section for place in self.before if place.section))


_known: WeakKeyDictionary[Graph, Places] = WeakKeyDictionary()


def places_of(graph: Graph) -> Places:
    """Return the places of a graph's ops, found once."""
    if graph not in _known:
        _known[graph] = Places(graph)
    return _known[graph]


def _modules(program: Program) -> list[str]:
    own = [_own_module(program, call) for call in program.ops]
    makers = {out: at for at, call in enumerate(program.ops) for out in program.writes(call)}
    readers: dict[int, list[int]] = {}
    for at, call in enumerate(program.ops):
        for value_id in program.reads(call):
            readers.setdefault(value_id, []).append(at)
    behind, ahead = list(own), list(own)  # the nearest modules that feed an op, and that it feeds
    for at, call in enumerate(program.ops):
        feeding = [behind[makers[v]] for v in program.reads(call) if v in makers]
        behind[at] = own[at] or next(filter(None, reversed(feeding)), "")
    for at, call in reversed(list(enumerate(program.ops))):
        fed = [ahead[reader] for out in program.writes(call) for reader in readers.get(out, [])]
        ahead[at] = own[at] or next(filter(None, fed), "")
    return [
        module or _between(before, after)
        for module, before, after in zip(own, behind, ahead, strict=True)
    ]


def _own_module(program: Program, call: OpCall) -> str:
    """Return the module that an op's result, source, constants or states are named after."""
    for out in program.writes(call):
        name = getattr(program.values[out], "name", "")
        if name == EMBEDDING or NUMBERED.search(name):
            return str(name)
    said = IN_MODULE.search(call.source)
    if said is not None:
        return said[1]
    return _common(list(_owners(program, call)))


def _owners(program: Program, call: OpCall) -> Iterator[str]:
    """Yield the modules of its constants, and of states that it writes: others may be a layer's."""
    names = zip(REGISTRY[call.name].args, call.args, strict=False)
    written = {arg for name, arg in names if name in REGISTRY[call.name].mutates}
    for value_id in program.reads(call):
        value = program.values[value_id]
        if not isinstance(value, TensorValue):
            continue
        if value.constant is not None or (value.state and value_id in written):
            path, dot, _ = (value.constant or value.name).rpartition(".")
            if dot:  # tables that layers share are nobody's
                yield path


def _common(paths: list[str]) -> str:
    """Return the innermost module that holds all of these."""
    common: list[str] = []
    for parts in zip(*(path.split(".") for path in paths), strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    return ".".join(common)


def _between(before: str, after: str) -> str:
    common = _common([path for path in (before, after) if path]) if before else ""
    of_layer = NUMBERED.search(before)
    if NUMBERED.search(common) or of_layer is None:
        return common
    return before[: of_layer.end()] if NUMBERED.search(after) else ""


def _sections(modules: list[str]) -> list[str]:
    numbers = [int(found[1]) if (found := NUMBERED.search(each)) else None for each in modules]
    layered = [at for at, number in enumerate(numbers) if number is not None]
    if not layered:
        return [""] * len(modules)
    sections: list[str] = []
    last = 0
    for at, number in enumerate(numbers):
        last = last if number is None else number
        if number is None and not layered[0] < at <= layered[-1]:
            sections.append(EMBEDDING if at < layered[0] else HEAD)
        else:
            sections.append(f"layer {last}")
    return sections


def _spelled(call: OpCall, module: str) -> str:
    """Spell an op as a line of torch, with its module."""
    name = call.name.rpartition(".")[0]
    stored = STORED.fullmatch(name)
    line = IN_TORCH.get(name, f"torch.ops.{call.name}")
    if stored is not None:
        given = "x, weight, bias" if stored[1] == "linear" else "tokens, weight"
        line = f"nn.functional.{stored[1]}({given})  # stored as {stored[2]}"
    return f"in {module}: {line}" if module else line
