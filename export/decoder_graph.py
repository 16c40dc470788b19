"""From a source to the decoder's graph: checked, exported on the meta device, lowered."""

from dataclasses import dataclass

import torch
from torch.export import Dim, ExportedProgram, export
from torch.fx import Node

from export.decoder import Decoder, DecoderConfig, weight_names
from export.lower import VALUE_NAME, lower
from export.sources import Source
from py_runtime.program import Program

EXAMPLE_TOKENS = 16  # any length but 0 and 1, which torch.export would take for special


@dataclass(frozen=True)
class DecoderGraph:
    """The program, and which data it asks of the source."""

    config: DecoderConfig
    program: Program
    constants: list[str]  # names of the data the program needs


def export_decoder(source: Source, config: DecoderConfig) -> DecoderGraph:
    """Traced without any weights: shapes and kinds alone decide the graph."""
    with torch.device("meta"):
        decoder = Decoder(config, source.kinds(config)).eval()
        tokens = torch.zeros(1, min(EXAMPLE_TOKENS, config.max_chunk), dtype=torch.int64)
        position = torch.zeros(1, dtype=torch.int64)
    length = Dim("tokens", min=1, max=config.max_chunk)
    with torch.no_grad():
        exported = export(decoder, (tokens, position), dynamic_shapes=({1: length}, None))
    _name_hidden_states(exported)
    program = lower(exported, source.name).program()
    constants = {name for _, _, name in program.constants()}
    return DecoderGraph(config, program, sorted(constants))


def _name_hidden_states(exported: ExportedProgram) -> None:
    """What goldens know by name: "embedding", "layers.0", …, "norm" (see export/reference.py)."""
    results: dict[str, Node] = {}  # a module's last call gives its result
    for node in exported.graph.nodes:
        modules = list((node.meta.get("nn_module_stack") or {}).values())
        if len(modules) > 1:
            path = modules[1][0]
            if path == "layers.0" and path not in results:
                results["embedding"] = node.all_input_nodes[0]
            results[path] = node
    for path, node in results.items():
        if path.startswith("layers.") or path in ("embedding", "norm"):
            node.meta[VALUE_NAME] = path


def expected_shapes(config: DecoderConfig) -> dict[str, tuple[int, ...]]:
    """Every tensor a checkpoint must have, in its dense form."""
    c = config
    q_rows, kv_rows = c.heads * c.head_dim, c.kv_heads * c.head_dim
    rows_and_columns = {
        "q_proj": (q_rows, c.width),
        "k_proj": (kv_rows, c.width),
        "v_proj": (kv_rows, c.width),
        "o_proj": (c.width, q_rows),
        "gate_proj": (c.hidden, c.width),
        "up_proj": (c.hidden, c.width),
        "down_proj": (c.width, c.hidden),
    }
    biased = {
        "q_proj": c.qkv_bias,
        "k_proj": c.qkv_bias,
        "v_proj": c.qkv_bias,
        "o_proj": c.o_bias,
        "gate_proj": c.mlp_bias,
        "up_proj": c.mlp_bias,
        "down_proj": c.mlp_bias,
    }
    shapes: dict[str, tuple[int, ...]] = {"norm.weight": (c.width,)}
    for name in weight_names(config):
        owner = name.removesuffix(".weight")
        part = owner.rpartition(".")[2]
        shapes[name] = rows_and_columns.get(part, (c.vocabulary, c.width))
        if biased.get(part, False):
            shapes[f"{owner}.bias"] = shapes[name][:1]
    for number in range(c.layers):
        for norm in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"layers.{number}.{norm}.weight"] = (c.width,)
        if c.qk_norm:
            for norm in ("q_norm", "k_norm"):
                shapes[f"layers.{number}.self_attn.{norm}.weight"] = (c.head_dim,)
    return shapes
