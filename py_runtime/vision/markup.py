"""The words around an image in a prompt: tokens that say where its tiles begin."""

from collections.abc import Sequence

from py_runtime.vision.config import TowerConfig
from py_runtime.vision.picture import Picture
from py_runtime.vision.tiles import layout_of

IMAGE = "<image>"  # a template writes one for each image
EDGE, WHOLE = "<fake_token_around_image>", "<global-img>"
PART = "<row_{line}_col_{column}>"
# A noncharacter, as those of chat/seams.py: it stands for an image in a message's text.
MARK = "\ufdd5"


def needed_tokens() -> Sequence[str]:
    """Return the tokens that a tokenizer must have."""
    return (IMAGE, EDGE, WHOLE)


def markup_of(config: TowerConfig, picture: Picture) -> str:
    """Return what stands in the prompt for one image; a row of it is IMAGE each."""
    layout = layout_of(config, picture.width, picture.height, picture.is_coarse)
    rows = IMAGE * config.rows
    lines = [
        "".join(
            f"{EDGE}{PART.format(line=line + 1, column=column + 1)}{rows}"
            for column in range(layout.columns)
        )
        for line in range(layout.lines)
    ]
    parts = "".join(f"{line}\n" for line in lines)
    between = "\n" if lines else ""
    return f"{parts}{between}{EDGE}{WHOLE}{rows}{EDGE}"


def rows_of(config: TowerConfig, picture: Picture) -> int:
    """Return how many tokens of the prompt are rows of this image."""
    layout = layout_of(config, picture.width, picture.height, picture.is_coarse)
    return layout.tiles * config.rows
