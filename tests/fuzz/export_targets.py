"""The config.json of a checkpoint, which the exporter reads. PyTorch comes when it is asked for."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.fuzz.documents import make_lie
from tests.fuzz.driver import Target

SIZES: dict[str, Any] = {
    **{"vocab_size": 320, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512},
    **{"rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "eos_token_id": 2},
}
LLAMA3 = {
    **{"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    "original_max_position_embeddings": 64,
}
FAMILIES: list[dict[str, Any]] = [
    {"model_type": "llama", "tie_word_embeddings": True, "head_dim": 16, "attention_bias": False},
    {"model_type": "llama", "rope_scaling": LLAMA3, "eos_token_id": [2, 3]},
    {"model_type": "mistral", "sliding_window": 256},
    {"model_type": "qwen2", "use_sliding_window": False, "max_window_layers": 2},
    {"model_type": "qwen3", "head_dim": 32, "rope_parameters": {"rope_theta": 1e6}},
]


def configs() -> list[bytes]:
    found = [json.dumps({**SIZES, **family}).encode() for family in FAMILIES]
    for config in found:  # what is imported on the way is there before memory is counted
        read_checkpoint_config(config)
    return found


def read_checkpoint_config(data: bytes) -> None:
    """Read as far as a decoder and its rotary tables."""
    from export.architectures import decoder_config, read_config, rotary_tables
    from export.sources import read_json

    with TemporaryDirectory() as folder:
        file = Path(folder) / "config.json"
        file.write_bytes(data)
        config = read_config(read_json(file))
    decoder = decoder_config(config, None)
    rotary_tables(config, min(decoder.context, 8))


TARGETS = [
    Target("config", configs, make_lie, read_checkpoint_config, count=400, memory=64 << 20),
]
