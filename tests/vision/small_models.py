"""A small random SmolVLM: in transformers, and as the two GGUF files that people have."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel, SmolVLMConfig, SmolVLMForConditionalGeneration
from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil
from transformers.models.smolvlm.processing_smolvlm import get_image_prompt_string

from py_runtime.folder.file_names import TOKENIZER, TOKENIZER_CONFIG
from py_runtime.gguf.container import HeaderWalk
from py_runtime.gguf.tokenizer import read_tokenizer
from py_runtime.tokens import Tokenizer
from py_runtime.vision.sight import Sight
from py_runtime.vision.siglip import SiglipSizes
from py_runtime.vision.smolvlm import SmolVlm
from tests.gguf.small import CONTROL, LETTERS, MERGES, NORMAL
from tests.gguf.written import Tensor, file

SIDE, PATCH, FACTOR, EDGE = 32, 4, 2, 64
WIDTH, LAYERS, HEADS = 32, 2, 2
TOWER_WIDTH, TOWER_HIDDEN, TOWER_HEADS = 24, 40, 3
IMAGE, EDGE_TOKEN, WHOLE = "<image>", "<fake_token_around_image>", "<global-img>"
SPECIAL = [
    *("<|im_start|>", "<end_of_utterance>", EDGE_TOKEN, IMAGE, WHOLE),
    *(f"<row_{line}_col_{column}>" for line in range(1, 5) for column in range(1, 5)),
]
TOKENS = [*SPECIAL, *LETTERS, "th", "the"]
IMAGE_ID = TOKENS.index(IMAGE)
START, END = SPECIAL[:2]
# SmolVLM's own asks for parts in this way.
TEMPLATE = (
    "<|im_start|>{% for message in messages %}{{ message['role'] | capitalize }}"
    "{% if message['content'][0]['type'] == 'image' %}:{% else %}: {% endif %}"
    "{% for line in message['content'] %}{% if line['type'] == 'text' %}{{ line['text'] }}"
    "{% elif line['type'] == 'image' %}<image>{% endif %}{% endfor %}<end_of_utterance>\n"
    "{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"
)
SIZES = SiglipSizes(
    patch=PATCH,
    width=TOWER_WIDTH,
    hidden=TOWER_HIDDEN,
    layers=LAYERS,
    heads=TOWER_HEADS,
    positions=(SIDE // PATCH) ** 2,
)
CONFIG = SmolVlm(sizes=SIZES, out=WIDTH, side=SIDE, factor=FACTOR, edge=EDGE)


def make_model() -> PreTrainedModel:
    """Random weights that matter: norms and biases differ from 1 and 0, too."""
    torch.manual_seed(0)
    sizes = {"num_hidden_layers": LAYERS, "initializer_range": 0.1}
    text = {
        "model_type": "llama",
        "hidden_size": WIDTH,
        "intermediate_size": 64,
        "num_attention_heads": HEADS,
        "num_key_value_heads": 1,
        "vocab_size": len(TOKENS),
        "max_position_embeddings": 1024,
        "rms_norm_eps": 1e-5,
        "bos_token_id": TOKENS.index(START),
        "eos_token_id": TOKENS.index(END),
        "pad_token_id": None,
        **sizes,
    }
    tower = {
        "hidden_size": TOWER_WIDTH,
        "intermediate_size": TOWER_HIDDEN,
        "num_attention_heads": TOWER_HEADS,
        "image_size": SIDE,
        "patch_size": PATCH,
        **sizes,
    }
    config = SmolVLMConfig(
        text_config=text,
        vision_config=tower,
        image_token_id=IMAGE_ID,
        scale_factor=FACTOR,
        pad_token_id=0,
    )
    model = SmolVLMForConditionalGeneration(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name and name.endswith("weight"):
                parameter.uniform_(0.5, 1.5)
            elif name.endswith("bias"):
                parameter.normal_(0, 0.2)
            else:
                parameter.normal_(0, 0.15)
    return model


def processed(images: list[np.ndarray]) -> dict[str, Any]:
    """Return what SmolVLM's own processor makes of images u8 [H, W, 3]."""
    processor = SmolVLMImageProcessorPil(
        size={"longest_edge": EDGE},
        max_image_size={"longest_edge": SIDE},
        return_row_col_info=True,
    )
    return dict(processor([images], return_tensors="pt", input_data_format="channels_last"))


def features(model: PreTrainedModel, image: np.ndarray) -> np.ndarray:
    """Return the rows of one image: f32 [rows, W]."""
    made = processed([image])
    with torch.no_grad():
        found = model.model.get_image_features(made["pixel_values"], made["pixel_attention_mask"])
    return np.concatenate([part.numpy() for part in found.pooler_output])


def image_texts(images: list[np.ndarray]) -> list[str]:
    """Return what SmolVLM's own processor writes for each image."""
    made = processed(images)
    return [
        get_image_prompt_string(lines, columns, CONFIG.rows, EDGE_TOKEN, IMAGE, WHOLE)
        for lines, columns in zip(made["rows"][0], made["cols"][0], strict=True)
    ]


def greedy(
    model: PreTrainedModel, ids: list[int], images: list[np.ndarray], count: int
) -> list[int]:
    """Return the likeliest tokens after a prompt with images."""
    made = processed(images) if images else {}
    given = {name: made[name] for name in ("pixel_values", "pixel_attention_mask") if name in made}
    with torch.no_grad():
        out = model.generate(
            input_ids=torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            max_new_tokens=count,
            min_new_tokens=count,
            do_sample=False,
            **given,
        )
    return [int(token) for token in out[0, len(ids) :]]


# As GGUF ----------------------------------------------------------------------------------------


def model_file(model: PreTrainedModel) -> np.ndarray:
    """Write the decoder as llama.cpp's converter does: its bytes."""
    text = model.config.text_config
    keys = {
        "block_count": text.num_hidden_layers,
        "context_length": text.max_position_embeddings,
        "embedding_length": text.hidden_size,
        "feed_forward_length": text.intermediate_size,
        "attention.head_count": text.num_attention_heads,
        "attention.head_count_kv": text.num_key_value_heads,
        "rope.freq_base": float(text.rope_parameters["rope_theta"]),
        "attention.layer_norm_rms_epsilon": text.rms_norm_eps,
    }
    metadata = {
        "general.architecture": "llama",
        "general.name": "small that sees",
        **{f"llama.{key}": value for key, value in keys.items()},
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": TOKENS,
        "tokenizer.ggml.token_type": [CONTROL if t in SPECIAL else NORMAL for t in TOKENS],
        "tokenizer.ggml.merges": MERGES,
        "tokenizer.ggml.bos_token_id": TOKENS.index(START),
        "tokenizer.ggml.eos_token_id": TOKENS.index(END),
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": TEMPLATE,
    }
    return np.frombuffer(file(metadata, list(_decoder_tensors(model))), np.uint8)


PARTS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
WHOLE_NAMES = {
    "model.text_model.embed_tokens.weight": "token_embd.weight",
    "model.text_model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


def _decoder_tensors(model: PreTrainedModel) -> Any:
    text = model.config.text_config
    for name, tensor in model.state_dict().items():
        values = tensor.float().numpy()
        if name in WHOLE_NAMES:
            yield Tensor.floats(WHOLE_NAMES[name], values)
        elif name.startswith("model.text_model.layers."):
            number, part = name.removeprefix("model.text_model.layers.").split(".", 1)
            if "q_proj" in part or "k_proj" in part:  # rotary pairs side by side
                heads = text.num_attention_heads if "q_" in part else text.num_key_value_heads
                halves = values.reshape(heads, 2, -1, values.shape[1])
                values = np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(values.shape)
            owner = PARTS[part.removesuffix(".weight")]
            yield Tensor.floats(f"blk.{number}.{owner}.weight", values)


def projector_file(model: PreTrainedModel, **changes: Any) -> np.ndarray:
    """Write the tower as llama.cpp's converter does: the bytes of an mmproj file."""
    keys = {
        "has_vision_encoder": True,
        "projector_type": "idefics3",
        "use_gelu": True,
        "vision.image_size": SIDE,
        "vision.patch_size": PATCH,
        "vision.embedding_length": TOWER_WIDTH,
        "vision.feed_forward_length": TOWER_HIDDEN,
        "vision.projection_dim": WIDTH,
        "vision.block_count": LAYERS,
        "vision.attention.head_count": TOWER_HEADS,
        "vision.attention.layer_norm_epsilon": 1e-6,
        "vision.image_mean": [0.5, 0.5, 0.5],
        "vision.image_std": [0.5, 0.5, 0.5],
        "vision.projector.scale_factor": FACTOR,
        "vision.preproc_image_size": EDGE,
        **changes,
    }
    metadata = {
        "general.architecture": "clip",
        "general.type": "mmproj",
        **{f"clip.{key}": value for key, value in keys.items()},
    }
    return np.frombuffer(file(metadata, tower_tensors(model, CONFIG)), np.uint8)


def tower_tensors(model: PreTrainedModel, sight: Sight) -> list[Tensor]:
    """Return a tower's tensors as mmproj files have them."""
    state = {name: tensor.float().numpy() for name, tensor in model.state_dict().items()}
    found = []
    for own in sight.shapes():
        ending = sight.checkpoint_name(own)
        (values,) = (state[name] for name in state if f".{name}".endswith(f".{ending}"))
        values = np.atleast_1d(values) + (own in sight.norms_from_one)
        found.append(Tensor.floats(sight.gguf_name(own), values))
    return found


def encode(model: np.ndarray, text: str) -> list[int]:
    """Return the tokens of a prompt, in which special ones are spelled, by a file's tokenizer."""
    header = HeaderWalk("x.gguf", len(model)).read(model.tobytes())
    tokenizer = Tokenizer.from_json(read_tokenizer(header.metadata)[TOKENIZER])
    return tokenizer.encode(text, add_special_tokens=False)


def save_checkpoint(folder: Path, model: PreTrainedModel, **options: Any) -> None:
    """Save the model as people publish it: in transformers' files, with a tokenizer."""
    model.save_pretrained(folder, **options)
    data = model_file(model)
    header = HeaderWalk("x.gguf", len(data)).read(data.tobytes())
    files = read_tokenizer(header.metadata)
    template = files[TOKENIZER_CONFIG].pop("chat_template")
    processing = {
        "image_processor_type": "SmolVLMImageProcessor",
        "size": {"longest_edge": EDGE},
        "max_image_size": {"longest_edge": SIDE},
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }
    for name, content in {**files, "preprocessor_config.json": processing}.items():
        (folder / name).write_text(json.dumps(content))
    (folder / "chat_template.jinja").write_text(template)
