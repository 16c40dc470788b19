"""Models of random weights in well-known shapes, for machines that the weights cannot reach.

    python -m bench.synthetic llama-3.2-1b -o FOLDER             the whole model
    python -m bench.synthetic llama-3.1-8b -o FOLDER --template  all but the weights

The graph is exported as a real model's is; a template (a few MB) becomes the model wherever
`fill.py` runs, with Python's standard library alone.
"""

import argparse
import base64
import json
import math
import struct
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from bench.engines import CONTEXT, LONG_CONTEXT, LONGEST_CONTEXT
from bench.fill import TEMPLATE, fill
from bench.roofline import arithmetic_per_token, bytes_read_per_token
from export.decoder_graph import export_decoder
from export.model_writer import DEFAULT_SHARD_SIZE, GRAPH, WEIGHTS_PREFIX
from export.pipeline import parameter_count, quantisation_name
from export.shard_plan import FilePlan, StoredTensor, plan_shards
from export.sources import Quantisation, Source
from py_runtime.decoder.tensors import WeightKind, expected_shapes
from py_runtime.folder.layout import Constant, constants_of
from py_runtime.folder.manifest import FORMAT, VERSION
from py_runtime.graph.buffers import measure
from py_runtime.program.json_format import dump_program
from tools.errors import UserError, exit_status

LLAMA3: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
    "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0},
    "bos_token_id": 128000,
    "eos_token_id": 128001,
}
SHAPES: dict[str, dict[str, Any]] = {
    "llama-3.2-1b": {
        **LLAMA3,
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "tie_word_embeddings": True,
    },
    "llama-3.1-8b": {
        **LLAMA3,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "tie_word_embeddings": False,
    },
    "smollm2-135m": {
        **LLAMA3,
        "vocab_size": 49152,
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "head_dim": 64,
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
    },
    "lfm2-1.2b": {
        "model_type": "lfm2",
        "vocab_size": 65536,
        "max_position_embeddings": 128000,
        "norm_eps": 1e-5,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0},
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "block_auto_adjust_ff_dim": False,
        "num_hidden_layers": 16,
        "full_attn_idxs": [2, 5, 8, 10, 12, 14],
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "conv_L_cache": 3,
        "bos_token_id": 1,
        "eos_token_id": 7,
    },
    "qwen3.5-0.8b": {
        "model_type": "qwen3_5_text",
        "vocab_size": 248320,
        "max_position_embeddings": 262144,
        "rms_norm_eps": 1e-6,
        "hidden_act": "silu",
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000000.0,
            "partial_rotary_factor": 0.25,
        },
        "hidden_size": 1024,
        "intermediate_size": 3584,
        "num_hidden_layers": 24,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 16,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "tie_word_embeddings": True,
        "eos_token_id": 248044,
    },
    "gemma-3-1b": {
        "model_type": "gemma3_text",
        "vocab_size": 262144,
        "max_position_embeddings": 32768,
        "rms_norm_eps": 1e-6,
        "hidden_activation": "gelu_pytorch_tanh",
        "rope_theta": 1000000.0,
        "rope_local_base_freq": 10000.0,
        "hidden_size": 1152,
        "intermediate_size": 6912,
        "num_hidden_layers": 26,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "query_pre_attn_scalar": 256,
        "sliding_window": 512,
        "sliding_window_pattern": 6,
        "tie_word_embeddings": True,
        "bos_token_id": 2,
        "eos_token_id": 1,
    },
    # A shape for tests of this script; an odd size, so that tensors are padded in their file.
    "tiny": {
        **LLAMA3,
        "vocab_size": 509,
        "hidden_size": 64,
        "intermediate_size": 160,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "tie_word_embeddings": False,
        "bos_token_id": 0,
        "eos_token_id": 1,
    },
}
# The same with the types that llama.cpp's quantiser gives a Q4_K_M file.
Q4_K_M = "-q4_k_m"
SHAPES |= {f"{name}{Q4_K_M}": SHAPES[name] for name in ("llama-3.2-1b", "llama-3.1-8b")}
SHAPES["tiny-32k"] = {**SHAPES["tiny"], "vocab_size": 49152}  # of the prompts
SHAPES[f"tiny{Q4_K_M}"] = {
    **SHAPES["tiny-32k"],
    "hidden_size": 256,
    "intermediate_size": 512,
    "head_dim": 64,
}
# The same with a context for whole books.
SHAPES["llama-3.2-1b-32k"] = SHAPES["llama-3.2-1b"]
# The contexts of shapes that people give long texts.
CONTEXTS = {
    **dict.fromkeys(
        ("llama-3.1-8b-q4_k_m", "gemma-3-1b", "lfm2-1.2b", "qwen3.5-0.8b"), LONG_CONTEXT
    ),
    **dict.fromkeys(("llama-3.2-1b-32k", "tiny-32k"), LONGEST_CONTEXT),
}
# Standard deviation of what random bytes stand for: 4-bit values less 8, signed bytes.
DEVIATION = {
    "q4gsw": math.sqrt((16**2 - 1) / 12),
    "q8_0": math.sqrt((256**2 - 1) / 12),
    "q4_k": math.sqrt((16**2 - 1) / 12),
    "q6_k": math.sqrt((64**2 - 1) / 12),
}


# Vectors that convolve, or make a delta net forget, by the last part of their names.
VECTORS = {"conv": 0.5, "conv1d": 0.5, "decay": -1.0, "dt": 0.0}


class SyntheticSource(Source):
    """A checkpoint that has shapes and no data."""

    def shape(self, name: str) -> tuple[int, ...] | None:
        return expected_shapes(self.decoder_config(CONTEXT)).get(name)

    def dense(self, name: str) -> np.ndarray:
        raise UserError(f"{self.name} is a shape alone: there is no data of {name}")


class MixedSource(SyntheticSource):
    """A checkpoint with the types of a Q4_K_M file: half of the layers have more bits in places."""

    def kind(self, weight: str) -> WeightKind:
        owner = weight.removesuffix(".weight")
        if owner == "lm_head" or (owner == "embed_tokens" and self.values["tie_word_embeddings"]):
            return WeightKind("q6_k")
        if not owner.endswith(("v_proj", "down_proj")):
            return WeightKind("q4_k")
        layer, layers = int(owner.split(".")[1]), self.values["num_hidden_layers"]
        more = layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2
        return WeightKind("q6_k" if more else "q4_k")


@dataclass(frozen=True)
class Fill:
    """The contents of a tensor: random bytes, a repeated number or bytes, or a file's bytes."""

    kind: str  # "noise", "f16", "f32", "bytes" (in hex) or "file"
    value: float | str = 0.0


def write_template(name: str, folder: Path) -> None:
    """Write a model folder without weights: fill.py makes them where they are needed."""
    hf_config = SHAPES[name]
    tokenizer = {"tokenizer.json": byte_tokenizer(), "tokenizer_config.json": {}}
    kind = MixedSource if name.endswith(Q4_K_M) else SyntheticSource
    source = kind(f"{name}-random", "none", hf_config, tokenizer, Quantisation("q4gsw", 32))
    config = source.decoder_config(CONTEXTS.get(name, CONTEXT))
    graph = export_decoder(source, config)
    memory = measure(graph.program)
    constants = constants_of(graph.program)
    folder.mkdir(parents=True)
    files = {
        GRAPH: dump_program(graph.program),
        "config.json": json.dumps(hf_config),
        **{file: json.dumps(content) for file, content in tokenizer.items()},
    }
    for file, text in files.items():
        (folder / file).write_text(text)
    tables = source.rotary_tables(config.context)
    for table, values in tables.items():
        (folder / f"{table}.bin").write_bytes(values.astype("<f4").tobytes())
    tensors = [StoredTensor(name, item.stored, item.dims) for name, item in constants.items()]
    plans = plan_shards(tensors, DEFAULT_SHARD_SIZE)
    fills = {
        name: Fill("file", f"{name}.bin") if name in tables else fill_of(name, item, source)
        for name, item in constants.items()
    }
    shards = [
        {
            "name": f"{WEIGHTS_PREFIX}{number:05}-of-{len(plans):05}.safetensors",
            **shard(plan, fills),
        }
        for number, plan in enumerate(plans, start=1)
    ]
    largest = max(spec.size for spec in memory.specs.values())
    limits = {"max_buffer_size": largest, "max_storage_buffer_binding_size": largest}
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "name": source.name,
        "parameters": parameter_count(config),
        "context": config.context,
        "gpu_bytes": memory.report.peak,
        "quantisation": quantisation_name(source),
        "graph": GRAPH,
        "weights": [entry["name"] for entry in shards],
        "goldens": None,
        "requires": {"features": [], "limits": limits},
        "source": {"name": source.name, "url": None, "licence": source.licence},
        "created_by": "inpage's bench",
    }
    template = {
        "manifest": manifest,
        "files": list(files),
        "shards": shards,
        "bytes_read_per_token": bytes_read_per_token(constants),
        "arithmetic_per_token": arithmetic_per_token(config),
    }
    (folder / TEMPLATE).write_text(json.dumps(template))


def shard(plan: FilePlan, fills: dict[str, Fill]) -> dict[str, Any]:
    """Return one weight file: its header, and what to fill each span of it with."""
    spans = [
        {
            "kind": fills[span.tensor].kind,
            "value": fills[span.tensor].value,
            "begin": span.begin,
            "bytes": span.end - span.begin,
            "padding": span.padding,
        }
        for span in plan.spans
    ]
    return {"header": base64.b64encode(plan.header).decode(), "spans": spans}


def fill_of(name: str, constant: Constant, source: Source) -> Fill:
    """Scales keep activations near 1, so that nothing overflows however deep the model is."""
    owner, _, part = name.rpartition(".")
    shape = source.shape(f"{owner}.weight")
    if part == "scales" and shape is not None:
        kind = source.kind(f"{owner}.weight").name
        columns = 1 if owner == "embed_tokens" else shape[1]
        scale = 1 / (DEVIATION[kind] * math.sqrt(columns))
        if kind in ("q4_k", "q6_k"):
            return Fill("bytes", scales_of_blocks(kind, scale).hex())
        return Fill(f"f{constant.stored.host.itemsize * 8}", scale)
    given = VECTORS.get(owner.rpartition(".")[2])
    if given is not None or owner.endswith("norm"):
        return Fill("f32", 1.0 if given is None else given)
    return Fill("noise")


def scales_of_blocks(kind: str, scale: float) -> bytes:
    """Return the scales of 256 columns that share one scale, with values on both sides of zero."""
    if kind == "q6_k":
        return bytes([64] * 16) + struct.pack("<e", scale / 64)
    # Scales and minima are 32: the two bits above four that are 0.
    return struct.pack("<eeIII", scale / 32, 7.5 * scale / 32, 0, 0, 0xAAAAAAAA)


def byte_tokenizer() -> dict[str, Any]:
    """Return a tokenizer with a token for each byte."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    model = models.BPE(vocab={letter: number for number, letter in enumerate(alphabet)}, merges=[])
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    loaded: dict[str, Any] = json.loads(tokenizer.to_str())
    return loaded


def main(arguments: list[str]) -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.synthetic")
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--template", action="store_true", help="leave the weights out")
    options = parser.parse_args(arguments)

    def work() -> None:
        out = options.out.resolve()
        if out.exists():
            raise UserError(f"{out} is there already; choose another folder")
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent) as temporary:
            template = Path(temporary) / "template"
            write_template(options.shape, template)
            if options.template:
                template.rename(out)
            else:
                fill(template, out)

    return exit_status(work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
