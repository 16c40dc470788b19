"""Words of a config.json that the families' files and their reader both know."""

from typing import Any

Words = dict[str, Any]  # a config.json, or some of its keys

FULL, SLIDING = "full_attention", "sliding_attention"  # of layer_types, and of rope_parameters
MAMBA_GROUPS = "mamba_norm_groups"  # of columns: what families say each in their own way
TILED = "linear_value_heads_tiled"  # GGUF files alone have it: see DeltaSizes
DEEP = "layers_with_images"  # the first ones, which add rows of images: whole config.json files
AXES = "axes"  # begins the names of shares that pairs of a head have in each of a token's places
TOGETHER, PLACES = "together", "places"  # inputs of decoders that see
