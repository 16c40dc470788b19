"""Images in prompts: what stands for them in texts, in a template's parts, and among tokens."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from py_runtime.base.errors import RequestError
from py_runtime.base.messages import message
from py_runtime.base.model_errors import ModelError
from py_runtime.chat.seams import CLOSE, OPEN
from py_runtime.tokens import Tokenizer
from py_runtime.vision.image_token import ImageToken
from py_runtime.vision.picture import MARK, Picture
from py_runtime.vision.sight import Sight

IMAGES = "images"  # a message's pictures, in the order of the marks in its content

Message = Mapping[str, Any]


def pictures_of(messages: Sequence[Message]) -> list[Picture]:
    """Return the pictures of all messages, in their order."""
    return [picture for each in messages for picture in each.get(IMAGES, ())]


def without_pictures(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the messages as templates take them; the marks stay in their contents."""
    return [{key: each[key] for key in each if key != IMAGES} for each in messages]


def in_parts(content: str) -> list[dict[str, str]]:
    """Return a content as a list of texts and images, which many templates ask for."""
    parts: list[dict[str, str]] = []
    for at, text in enumerate(content.split(MARK)):
        if at:
            parts.append({"type": "image"})
        if text:
            parts.append({"type": "text", "text": text})
    return parts or [{"type": "text", "text": ""}]


class ImagePrompts:
    """The images in the prompts of one model."""

    def __init__(self, name: str, sight: Sight, tokenizer: Tokenizer) -> None:
        self._sight = sight
        # A template's image; one between the marks of seams is what somebody wrote.
        self._written = re.compile(f"(?<!{OPEN}){re.escape(sight.written)}(?!{CLOSE})")
        rows = [token for token in sight.row_tokens if tokenizer.id_of(token) is not None]
        missing = [token for token in sight.others if tokenizer.id_of(token) is None]
        missing += [] if rows else sight.row_tokens[:1]
        if missing:
            raise ModelError(
                f"{name} has no token {', '.join(missing)}, by which prompts speak of images",
                "give the mmproj file of the same model, or load the model without it",
            )
        self._row = rows[0]
        token = tokenizer.id_of(self._row)
        assert token is not None, "the tokenizer has it"
        self._token = token
        stand_in = tokenizer.id_of(sight.stand_in or self._row)
        assert stand_in is not None, "the tokenizer has it, too"
        self._stand_in = stand_in

    def in_words(self, content: str) -> str:
        """Return a content for a template that knows texts only."""
        return content.replace(MARK, self._sight.written)

    def written(self, rendered: str, pictures: Sequence[Picture]) -> str:
        """Return the template's text with all that stands for each image in its place."""
        rest = iter(pictures)
        text, count = self._written.subn(lambda found: self._markup(next(rest, None)), rendered)
        if count != len(pictures):
            raise RequestError(message("images_not_in_prompt"), "messages")
        return text

    def _markup(self, picture: Picture | None) -> str:
        return self._sight.markup_of(picture, self._row) if picture is not None else ""

    def placed(
        self, ids: Sequence[int], pictures: Sequence[Picture], most: int | None
    ) -> list[int]:
        """Return the tokens, those of images with the row that each stands for."""
        rows = (
            ImageToken(self._stand_in, picture, row)
            for picture in pictures
            for row in range(self._sight.rows_of(picture))
        )
        placed = [next(rows, token) if token == self._token else token for token in ids]
        is_whole = most is None or len(ids) < most
        is_odd = any(type(token) is int and token == self._token for token in placed)
        if is_odd or (is_whole and next(rows, None) is not None):
            raise RequestError(message("images_not_in_prompt"), "messages")
        return placed

    def count(self, picture: Picture) -> int:
        """Return how many tokens the rows of an image take."""
        return self._sight.rows_of(picture)
