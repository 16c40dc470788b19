"""Models as transformers publishes them, which know nothing of us."""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor, nn

SIZES: dict[str, Any] = {
    "vocab_size": 97, "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4,
    "max_position_embeddings": 64, "pad_token_id": 0,
}  # fmt: skip


class PublishedDecoder(nn.Module):
    """The class that people load, with random weights: all of a prompt at once."""

    def __init__(self, name: str, config: str, **more: Any) -> None:
        super().__init__()
        import transformers  # takes seconds

        settings = getattr(transformers, config)(**SIZES, num_key_value_heads=2, **more)
        self.model = getattr(transformers, name)(settings)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.model(tokens, use_cache=False).logits


class PublishedBert(nn.Module):
    """An encoder that sees both ways, for embeddings: a vector of length 1 for each text."""

    def __init__(self) -> None:
        super().__init__()
        from transformers import BertConfig, BertModel  # takes seconds

        self.model = BertModel(BertConfig(**SIZES, num_hidden_layers=2), add_pooling_layer=False)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.model(tokens).last_hidden_state  # [1, S, 64]
        pooled = hidden.mean(dim=1)
        return hidden, pooled / pooled.square().sum(dim=-1, keepdim=True).sqrt()


# Windows are shorter than the prompts. Each kind of layer is there once: tracing takes long.
PUBLISHED: dict[str, Callable[[], nn.Module]] = {
    "BERT": PublishedBert,
    "Llama": partial(PublishedDecoder, "LlamaForCausalLM", "LlamaConfig", num_hidden_layers=2),
    "Gemma 3": partial(
        PublishedDecoder, "Gemma3ForCausalLM", "Gemma3TextConfig", num_hidden_layers=2, head_dim=24,
        sliding_window=8, layer_types=["sliding_attention", "full_attention"],
    ),
    "Phi-3": partial(PublishedDecoder, "Phi3ForCausalLM", "Phi3Config", num_hidden_layers=1),
    "Phi-4-mini": partial(
        PublishedDecoder, "Phi3ForCausalLM", "Phi3Config", num_hidden_layers=1, sliding_window=8,
        rope_parameters={
            "rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.75,
        },
    ),
    "LFM2": partial(
        PublishedDecoder, "Lfm2ForCausalLM", "Lfm2Config", num_hidden_layers=2,
        layer_types=["conv", "full_attention"],
    ),
}  # fmt: skip
