"""Keys of GGUF files that tests write: a small model's sizes, and what its kinds of layers need."""

from typing import Any

import numpy as np

from py_runtime.decoder.families import BY_ARCHITECTURE
from py_runtime.gguf.config import family_words
from py_runtime.gguf.keys import Keys
from py_runtime.gguf.metadata import Metadata, Value, ValueType

LAYERS, HEADS, KV_HEADS, HEAD_DIM, WIDTH, HIDDEN, CONTEXT = 9, 6, 3, 14, 77, 109, 300
VOCABULARY = 131
SIZES = {
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": HEAD_DIM,
    "hidden_size": WIDTH,
    "intermediate_size": HIDDEN,
    "max_position_embeddings": CONTEXT,
    "hidden_act": "the family's",
    "vocab_size": VOCABULARY,
}
KINDS = {bool: ValueType.BOOL, int: ValueType.U32, float: ValueType.F32, str: ValueType.TEXT}
PLAIN = {"rope_type": "default", "rope_theta": 10000.0}
SSM = {
    "ssm.time_step_rank": 6,
    "ssm.inner_size": 42,
    "ssm.conv_kernel": 4,
    "ssm.group_count": 3,
    "ssm.state_size": 10,
}
ROUTING = {"expert_count": 8, "expert_used_count": 3}
EXPERTS = ROUTING | {"expert_feed_forward_length": 11}
CONV = {"attention.head_count_kv": [0, 3, 3, 0, 3, 0, 0, 3, 0], "shortconv.l_cache": 3}
WINDOW = "attention.sliding_window"
PATTERN = "attention.sliding_window_pattern"
WIDTHS = [HIDDEN] * 7 + [2 * HIDDEN] * 2


def keys_of(architecture: str, given: dict[str, Any]) -> Keys:
    values = {}
    for key, item in given.items():
        if isinstance(item, list):
            value = Value(KINDS[type(item[0])], np.array(item), is_array=True)
        else:
            value = Value(KINDS[type(item)], item)
        values[f"{architecture}.{key}"] = value
    return Keys(Metadata("x.gguf", values), architecture)


def words_of(architecture: str, given: dict[str, Any], **sizes: int) -> dict[str, Any]:
    family = BY_ARCHITECTURE[architecture]
    return family_words(keys_of(architecture, given), family, SIZES | sizes)
