"""The ways in which encoders ask to be used, and what their files may not say."""

from typing import Any

import numpy as np
import pytest

from py_runtime.base.errors import RequestError
from py_runtime.base.model_errors import ModelError
from py_runtime.encoder.config import encoder_config
from py_runtime.encoder.encoding import POOLINGS, Encoding, pooling_folder, read_encoding

OLD, NEW = "sentence_transformers.models", "sentence_transformers.sentence_transformer.modules"
MEAN = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}
PROMPTS = {"prompts": {"query": "Find: ", "document": ""}, "default_prompt_name": None}
CONFIG: dict[str, Any] = {
    "model_type": "bert",
    "vocab_size": 100,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
}


def modules(*kinds: str, start: str = OLD) -> list[dict[str, Any]]:
    paths = {"Transformer": "", "Pooling": "1_Pooling"}
    return [{"type": f"{start}.{kind}", "path": paths.get(kind, f"2_{kind}")} for kind in kinds]


@pytest.mark.parametrize("start", [OLD, NEW])
@pytest.mark.parametrize(
    ("kinds", "pooling", "wanted"),
    [
        (("Transformer", "Pooling", "Normalize"), MEAN, Encoding("mean", True)),
        (("Transformer", "Pooling"), MEAN, Encoding("mean", False)),
        (("Transformer", "Pooling"), {"pooling_mode_cls_token": True}, Encoding("cls", False)),
        (("Transformer", "Pooling"), {"pooling_mode_lasttoken": True}, Encoding("last", False)),
        (("Transformer", "Pooling"), {"pooling_mode": "lasttoken"}, Encoding("last", False)),
    ],
)
def test_files_say_how_texts_become_vectors(
    start: str, kinds: tuple[str, ...], pooling: dict[str, Any], wanted: Encoding
) -> None:
    listed = modules(*kinds, start=start)
    assert pooling_folder(listed) == "1_Pooling"
    assert read_encoding(listed, pooling, None) == wanted


def test_without_such_files_it_is_the_mean_at_length_1() -> None:
    assert pooling_folder(None) is None
    assert read_encoding(None, None, None) == Encoding("mean", True)


@pytest.mark.parametrize(
    ("listed", "pooling", "settings", "fault"),
    [
        (modules("Pooling", "Transformer"), MEAN, None, "does not begin with an encoder"),
        (modules("Transformer"), None, None, "does not begin with an encoder and a pooling"),
        (modules("Transformer", "Pooling", "CNN"), MEAN, None, "'CNN', which is not supported"),
        (modules("Transformer", "Pooling"), {"pooling_mode_max_tokens": True}, None, "'max'"),
        (
            modules("Transformer", "Pooling"),
            {**MEAN, "pooling_mode_cls_token": True},
            None,
            "'mean' and 'cls'",
        ),
        (modules("Transformer", "Pooling"), {}, None, "pooling is none"),
        (
            modules("Transformer", "Pooling"),
            {**MEAN, "include_prompt": False},
            PROMPTS,
            "leaves prompts out",
        ),
        (None, None, {"prompts": {"query": 5}}, "no texts by names"),
        (None, None, {"prompts": {}, "default_prompt_name": "query"}, "no texts by names"),
    ],
)
def test_what_cannot_be_done_is_refused(
    listed: Any, pooling: Any, settings: Any, fault: str
) -> None:
    with pytest.raises(ModelError, match=fault):
        read_encoding(listed, pooling, settings)


@pytest.mark.parametrize("path", ["../other", "/etc", "", 5, "a/b"])
def test_the_poolings_folder_is_one_step_down(path: Any) -> None:
    with pytest.raises(ModelError, match="has the path"):
        pooling_folder([{"type": f"{OLD}.Pooling", "path": path}])


def test_prompts_by_name() -> None:
    encoding = read_encoding(None, None, PROMPTS)
    assert [encoding.prompt(name) for name in (None, "query", "document")] == ["", "Find: ", ""]
    usual = read_encoding(None, None, {**PROMPTS, "default_prompt_name": "query"})
    assert usual.prompt(None) == "Find: "
    with pytest.raises(RequestError, match="those of this model are query, document"):
        encoding.prompt("title")
    with pytest.raises(RequestError, match="this model has none"):
        Encoding().prompt("query")


@pytest.mark.parametrize("name", POOLINGS)
def test_what_tokens_give_to_a_vector(name: str) -> None:
    shares = Encoding(name).shares(4)
    wanted: dict[str, list[float]] = {
        "mean": [1 / 4] * 4,
        "cls": [1, 0, 0, 0],
        "last": [0, 0, 0, 1],
        "mean_sqrt_len": [1 / 2] * 4,
        "weightedmean": [0.1, 0.2, 0.3, 0.4],
    }
    np.testing.assert_allclose(shares, wanted[name])
    np.testing.assert_allclose(Encoding().shares(4, name), wanted[name])
    with pytest.raises(RequestError, match="pooling must be one of mean, cls"):
        Encoding().shares(4, "max")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"model_type": "t5"}, "model_type 't5' is none of the text encoders .*MiniLM"),
        ({"hidden_size": None}, "hidden_size is None, not an integer from 1"),
        ({"hidden_size": True}, "hidden_size is True"),
        ({"num_hidden_layers": 10**6}, "num_hidden_layers is 1000000, not an integer from 1 to"),
        ({"num_attention_heads": 5}, "5 heads do not share 64 columns"),
        ({"hidden_act": "gelu_fast"}, "hidden_act is 'gelu_fast', which is not supported"),
        ({"position_embedding_type": "relative_key"}, "'relative_key', which is not supported"),
        ({"is_decoder": True}, "is_decoder is True, which is not supported"),
        ({"layer_norm_eps": float("nan")}, "layer_norm_eps is nan"),
        ({"model_type": "nomic_bert", "prenorm": True}, "prenorm is True"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "rope_type is 'yarn'"),
        ({"model_type": "roberta", "pad_token_id": 511}, "positions begin at 512"),
    ],
)
def test_a_config_that_cannot_be_computed(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(ModelError, match=fault):
        encoder_config({**CONFIG, **changes})


def test_a_config_of_nomics_own_words() -> None:
    published = {
        "model_type": "nomic_bert",
        "vocab_size": 100,
        "n_embd": 64,
        "n_inner": 128,
        "n_layer": 2,
        "n_head": 4,
        "n_positions": 8192,
        "max_trained_positions": 2048,
        "layer_norm_epsilon": 1e-6,
        "activation_function": "swiglu",
        "rotary_emb_base": 10000,
        "type_vocab_size": 2,
    }
    config = encoder_config(published)
    assert (config.width, config.hidden, config.layers, config.context) == (64, 128, 2, 2048)
    assert (config.eps, config.theta, config.activation) == (1e-6, 10000.0, "silu")


def test_sizes_follow_from_a_config() -> None:
    config = encoder_config(CONFIG)
    assert (config.context, config.texts, config.head_dim, config.types) == (512, 8, 16, 2)
    short = encoder_config({**CONFIG, "max_position_embeddings": 32})
    assert (short.context, short.texts) == (32, 64)
    long = encoder_config({**CONFIG, "max_position_embeddings": 1 << 20})
    assert (long.context, long.texts) == (8192, 1)
