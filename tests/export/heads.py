"""A head that foresees tokens, in PyTorch: the oracle of py_runtime/decoder/head.py.

Checkpoints of Qwen3.5 have one, as `mtp.…`, which transformers leaves out. This is its published
definition, around a layer of transformers: at each position, the embedding of the token that
follows and what the model's last norm gives there, each normalised, become one by a matrix. Behind
a layer and a norm of its own, the model's head has the logits of the token after that one. For
tokens further on, what its own norm gave takes the place of the model's.
"""

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5DecoderLayer, Qwen3_5RMSNorm

# Matrices whose products are added to what goes through the layers.
ENDS = ("o_proj.weight", "down_proj.weight", "out_proj.weight")


class Mtp(nn.Module):
    """The head of a model; parts have the names of checkpoints."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        config = model.config.get_text_config()
        width, eps = config.hidden_size, config.rms_norm_eps
        self.fc = nn.Linear(2 * width, width, bias=False)
        self.pre_fc_norm_embedding = Qwen3_5RMSNorm(width, eps)
        self.pre_fc_norm_hidden = Qwen3_5RMSNorm(width, eps)
        full = config.layer_types.index("full_attention")
        self.layers = nn.ModuleList([Qwen3_5DecoderLayer(config, full)])
        self.norm = Qwen3_5RMSNorm(width, eps)

    def forward(self, model: PreTrainedModel, tokens: Tensor, ends: Tensor) -> Tensor:
        """Return what its norm gives, [S, W], for following tokens [S] and ends [S, W]."""
        text = model.model.language_model
        embedded = self.pre_fc_norm_embedding(text.embed_tokens(tokens))
        x = self.fc(torch.cat([embedded, self.pre_fc_norm_hidden(ends)], dim=-1))[None]
        length = len(tokens)
        places = torch.arange(length).expand(3, 1, length)
        mask = torch.full((length, length), float("-inf")).triu(1)[None, None]
        turned = text.rotary_emb(x, places)
        return self.norm(self.layers[0](x, position_embeddings=turned, attention_mask=mask))[0]


def add_head(model: PreTrainedModel, agrees: float | None = None) -> None:
    """Give a model a random head, as its `mtp`.

    `agrees`: a head that expects what the model writes, and so much of what a random one does. Both
    go by little else than the last token then.
    """
    torch.manual_seed(1)
    model.mtp = Mtp(model)
    with torch.no_grad():
        for name, parameter in model.mtp.named_parameters():
            low, high = (-0.5, 0.5) if "norm" in name else (-0.14, 0.14)
            parameter.uniform_(low, high)
        if agrees is None:
            return
        for name, parameter in model.named_parameters():
            if name.endswith(ENDS):
                parameter.mul_(agrees)
        width = model.mtp.norm.weight.numel()
        model.mtp.pre_fc_norm_embedding.weight.zero_()  # what is stored is beyond 1
        model.mtp.norm.weight.copy_(model.model.language_model.norm.weight)
        model.mtp.fc.weight.mul_(agrees)
        model.mtp.fc.weight[:, :width] += torch.eye(width)


@torch.no_grad()
def foreseen(model: PreTrainedModel, text: list[int], more: int) -> list[Tensor]:
    """Return the logits of the head at each position of a text but its last.

    Then those of so many further tokens, of which each is the likeliest.
    """
    tokens = torch.tensor(text)
    ends = model.model.language_model(tokens[None, :-1]).last_hidden_state[0]
    own = model.mtp(model, tokens[1:], ends)
    found = list(model.lm_head(own))
    for _ in range(more):
        tokens = torch.cat([tokens, found[-1].argmax()[None]])
        ends = torch.cat([ends, own[-1:]])
        own = model.mtp(model, tokens[1:], ends)
        found.append(model.lm_head(own[-1]))
    return found
