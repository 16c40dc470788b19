"""The default model for transformers.js: ONNX with the very weights of the exported folder.

    bench/.venv/bin/python -m bench.peer_models MODEL OUT

onnxruntime-genai's own builder makes the graph, so that a peer runs what its makers would ship;
then its weights give way to those of the GGUF, as our folder holds them. Two variants:

  webgpu   4-bit layers with fp32 activations, one 8-bit matrix as embedding and head
  wasm     the same with int8 activations, which are faster there, and an fp32 embedding: the CPU
           build of onnxruntime-web has no look-up in a quantised one
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import ModelProto, numpy_helper
from safetensors.numpy import load_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging

from bench.zero_points import BLOCK, integer_zero_points

DTYPE_FILE = "model_q4"  # what transformers.js looks for when it is asked for "q4"
FP32_ACTIVATIONS, INT8_ACTIVATIONS = 0, 4  # MatMulNBits' accuracy_level
BUILDER_OPTIONS = (
    "use_webgpu_fp32=true",
    "block_size=32",
    "is_symmetric=false",
    "matmul_mixed_precision=last_matmul:int8",
    "shared_embeddings=true",
    "prune_lm_head=true",
    "hf_token=false",
)
# A matrix of the ONNX graph → the weights whose rows it holds, one after the other
PROJECTIONS = {
    "attn.qkv_proj": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "attn.o_proj": ("self_attn.o_proj",),
    "mlp.gate_proj": ("mlp.gate_proj",),
    "mlp.up_proj": ("mlp.up_proj",),
    "mlp.down_proj": ("mlp.down_proj",),
}
HEAD = "lm_head.MatMul.weight"
# The builder misnames what the embedding shares with the head.
MISNAMED = {
    f"{HEAD}_scale": f"{HEAD}_scales",
    f"{HEAD}_zp": f"{HEAD}_zero_points",
    f"{HEAD}_Q8G32": f"{HEAD}_Q8",
}

Weights = dict[str, np.ndarray]


def make(model: Path, out: Path) -> None:
    """Make a float checkpoint of our weights and ONNX of it, then put our blocks in."""
    logging.disable_progress_bar()
    weights: Weights = {}
    for shard in sorted(model.glob("weights-*.safetensors")):
        weights |= load_file(shard)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as temporary:
        scratch = Path(temporary)
        save_checkpoint(model, weights, scratch / "checkpoint")
        build_onnx(scratch / "checkpoint", scratch / "onnx")
        fresh = scratch / "fresh"
        graph = onnx.load(scratch / "onnx" / "model.onnx")
        put_weights(graph, weights)
        set_activations(graph, FP32_ACTIVATIONS)
        write_variant(graph, model, fresh / "webgpu")
        set_activations(graph, INT8_ACTIVATIONS)
        use_plain_embedding(graph, weights)
        write_variant(graph, model, fresh / "wasm")
        shutil.rmtree(out, ignore_errors=True)
        fresh.rename(out)


def save_checkpoint(model: Path, weights: Weights, folder: Path) -> None:
    """Save a Hugging Face folder for the builder.

    Its matrices stay random, as they are replaced.
    """
    config = json.loads((model / "config.json").read_text())
    decoder = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config))
    norms = {
        f"model.{name}": torch.from_numpy(value.copy())
        for name, value in weights.items()
        if name.endswith("norm.weight")
    }
    decoder.load_state_dict(norms, strict=False)
    decoder.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(model / name, folder / name)


def build_onnx(checkpoint: Path, out: Path) -> None:
    """Run onnxruntime-genai's own builder, in a process of its own."""
    arguments = ["-i", checkpoint, "-o", out, "-c", out / "cache", "-p", "int4", "-e", "webgpu"]
    built = subprocess.run(
        [sys.executable, "-m", "onnxruntime_genai.models.builder"]
        + [str(argument) for argument in arguments]
        + ["--extra_options", *BUILDER_OPTIONS],
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
    )
    if built.returncode != 0:
        sys.exit(f"onnxruntime-genai's builder failed: {built.stderr.strip().splitlines()[-1]}")


# Weights -----------------------------------------------------------------------------------------


def put_weights(graph: ModelProto, weights: Weights) -> None:
    """Replace what the builder quantised by the exported folder's own blocks."""
    initializers = {tensor.name: tensor for tensor in graph.graph.initializer}

    def put(name: str, array: np.ndarray) -> None:
        known = initializers[name]
        values = np.ascontiguousarray(array).reshape(tuple(known.dims))
        known.CopyFrom(numpy_helper.from_array(values, name))

    layers = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("layers."))
    for layer in range(layers):
        for matrix, sources in PROJECTIONS.items():
            names = [f"layers.{layer}.{source}" for source in sources]
            packed, scales, zero_points = integer_zero_points(
                np.concatenate([weights[f"{name}.weight"] for name in names]),
                np.concatenate([weights[f"{name}.scales"] for name in names]),
            )
            base = f"model.layers.{layer}.{matrix}.MatMul.weight"
            put(f"{base}_Q4", packed)
            put(f"{base}_scales", scales)
            put(f"{base}_zero_points", zero_points)
    embedding, scales = weights["embed_tokens.weight"], weights["embed_tokens.scales"]
    put(f"{HEAD}_Q8", (embedding.astype(np.int16) + 128).astype(np.uint8))
    put(f"{HEAD}_scales", scales.astype(np.float32))
    zero_points = np.full(tuple(initializers[f"{HEAD}_zero_points"].dims), 128, np.uint8)
    put(f"{HEAD}_zero_points", zero_points)
    for node in graph.graph.node:
        for place, name in enumerate(node.input):
            node.input[place] = MISNAMED.get(name, name)


def set_activations(graph: ModelProto, level: int) -> None:
    """`level`: how precisely MatMulNBits takes its activations."""
    for node in graph.graph.node:
        for attribute in node.attribute:
            if node.op_type == "MatMulNBits" and attribute.name == "accuracy_level":
                attribute.i = level


def use_plain_embedding(graph: ModelProto, weights: Weights) -> None:
    """Replace the quantised table by a float one, which holds the very same values."""
    scales = weights["embed_tokens.scales"].astype(np.float32)
    blocks = weights["embed_tokens.weight"].reshape(*scales.shape, BLOCK)
    table = (blocks * scales[..., None]).reshape(len(scales), -1)  # [vocabulary, width]
    graph.graph.initializer.append(numpy_helper.from_array(table, "model.embed_tokens.weight"))
    nodes = graph.graph.node
    look_up = next(node for node in nodes if node.op_type == "GatherBlockQuantized")
    reshape = next(node for node in nodes if look_up.input[0] in node.output)
    plain = onnx.helper.make_node(
        "Gather", ["model.embed_tokens.weight", look_up.input[1]], list(look_up.output)
    )
    look_up.CopyFrom(plain)
    nodes.remove(reshape)


# Files -------------------------------------------------------------------------------------------


def write_variant(graph: ModelProto, model: Path, folder: Path) -> None:
    """Write the layout that transformers.js fetches."""
    config = json.loads((model / "config.json").read_text())
    fix_shapes(graph, config["head_dim"])
    (folder / "onnx").mkdir(parents=True)
    config["transformers.js_config"] = {"use_external_data_format": {f"{DTYPE_FILE}.onnx": 1}}
    (folder / "config.json").write_text(json.dumps(config))
    shutil.copyfile(model / "tokenizer.json", folder / "tokenizer.json")
    tokenizer = json.loads((model / "tokenizer_config.json").read_text())
    tokenizer["tokenizer_class"] = "GPT2Tokenizer"
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    (folder / "generation_config.json").write_text(
        json.dumps({name: config[name] for name in ("bos_token_id", "eos_token_id")})
    )
    onnx.save(
        graph,
        folder / "onnx" / f"{DTYPE_FILE}.onnx",
        save_as_external_data=True,
        location=f"{DTYPE_FILE}.onnx_data",
        size_threshold=1024,
    )
    # Saving leaves the data in the file alone; the next variant needs it here.
    onnx.load_external_data_for_model(graph, str(folder / "onnx"))


def fix_shapes(graph: ModelProto, head_dim: int) -> None:
    """Fix the shapes that the peer's engine needs.

    transformers.js sizes its empty cache from the input's shape, which must be a number there;
    onnxruntime-web refuses empty inputs past those an op's schema knows.
    """
    for value in (*graph.graph.input, *graph.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param == "kv_cache_dim":
                dim.dim_value = head_dim
    for node in graph.graph.node:
        while node.input and not node.input[-1]:
            node.input.pop()


if __name__ == "__main__":
    make(Path(sys.argv[1]), Path(sys.argv[2]))
