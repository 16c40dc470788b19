"""The post-processors of tokenizer.json: the special tokens around a text's ids."""

from collections.abc import Callable
from functools import reduce

from py_runtime.tokens.section import Section

# (ids, whether to add special tokens) -> ids
PostProcessor = Callable[[list[int], bool], list[int]]


def build_post_processor(section: Section | None) -> PostProcessor:
    """Build a post-processor; no section adds nothing. An unknown kind is a TokenizerError."""
    if section is None:
        return unchanged
    match section.kind:
        case "ByteLevel":
            return unchanged  # it concerns places in the text, not ids
        case "TemplateProcessing":
            return Template.read(section)
        case "BertProcessing" | "RobertaProcessing":
            return Template([read_token(section, "cls")], [read_token(section, "sep")])
        case "Sequence":
            steps = [build_post_processor(step) for step in section.sections("processors")]
            return lambda ids, special: reduce(
                lambda so_far, step: step(so_far, special), steps, ids
            )
        case _:
            raise section.unsupported()


def unchanged(ids: list[int], add_special_tokens: bool) -> list[int]:
    """Return the ids as they are."""
    return ids


class Template:
    """The ids that go before and after the text's."""

    def __init__(self, before: list[int], after: list[int]) -> None:
        self.before, self.after = before, after

    @classmethod
    def read(cls, section: Section) -> "Template":
        """Read the pieces of a text by itself."""
        specials = section.section("special_tokens") or Section.of(section.where, {})
        before: list[int] = []
        after: list[int] = []
        place, has_text = before, False
        for piece in section.sections("single"):
            match piece.fields:
                case {"Sequence": {"id": "A"}} if not has_text:
                    place, has_text = after, True
                case {"SpecialToken": {"id": str(name)}} if special := specials.section(name):
                    place += read_ids(special)
                case _:
                    raise piece.error(f"{piece.fields!r} is not supported in a template")
        if not has_text:
            raise section.error("the template has no place for the text")
        return cls(before, after)

    def __call__(self, ids: list[int], add_special_tokens: bool) -> list[int]:
        return [*self.before, *ids, *self.after] if add_special_tokens else ids


def read_token(section: Section, role: str) -> int:
    """Return the id of a token that a file names as [text, id]."""
    match section.get(role, list):
        case [str(), int() as token_id]:
            return token_id
    raise section.error(f"{role} is not a token and its id")


def read_ids(special: Section) -> list[int]:
    """TokenizerError where one is not a whole number."""
    ids = special.get("ids", list)
    if not all(type(token_id) is int for token_id in ids):
        raise special.error("ids are not all whole numbers")
    return ids
