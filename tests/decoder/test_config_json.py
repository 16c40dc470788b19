"""What config.json says of a model's layers."""

from py_runtime.decoder.config_json import layer_kinds

FULL, SLIDING = "full_attention", "sliding_attention"
VALUES = {
    "num_hidden_layers": 3,
    "sliding_window": 16,
    "layer_types": [SLIDING, FULL, SLIDING],
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e4},
}


def test_full_layers_of_exaone_4_do_not_turn() -> None:
    kinds = layer_kinds({**VALUES, "model_type": "exaone4"})
    assert [(kind.window, kind.tables) for kind in kinds] == [(16, ""), (None, None), (16, "")]


def test_full_layers_of_others_do() -> None:
    kinds = layer_kinds({**VALUES, "model_type": "olmo3"})
    assert [(kind.window, kind.tables) for kind in kinds] == [(16, ""), (None, ""), (16, "")]


def test_without_a_window_all_of_exaone_4_turn() -> None:
    values = {**VALUES, "model_type": "exaone4", "sliding_window": None, "layer_types": None}
    assert layer_kinds(values) == ()
