"""The token of a prompt that stands for a row of an image."""

from typing import TypeGuard

from py_runtime.vision.picture import Picture


class ImageToken(int):
    """A token by its number, which also is a row of one picture.

    It equals the same row of the same picture only, so that caches hold what was seen.
    """

    picture: Picture
    row: int

    def __new__(cls, token: int, picture: Picture, row: int) -> "ImageToken":
        made = super().__new__(cls, token)
        made.picture, made.row = picture, row
        return made

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ImageToken):
            return False
        same = self.row == other.row and int(self) == int(other)
        return same and self.picture.digest == other.picture.digest

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.picture.digest, self.row))


def begins(token: int) -> TypeGuard[ImageToken]:
    """Return whether a token is the first row of an image."""
    return isinstance(token, ImageToken) and token.row == 0
