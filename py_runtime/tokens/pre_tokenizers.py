"""The pre-tokenizers of tokenizer.json: from a piece of text to words.

Each takes a piece and whether the whole text starts with it, and returns no empty words, except for
a first one that stands for a removed beginning: the next word does not start the text then.
"""

from collections.abc import Callable, Iterable, Iterator

from py_runtime.tokens import characters
from py_runtime.tokens.bert import bert_words
from py_runtime.tokens.byte_level import ALPHABET
from py_runtime.tokens.patterns import Literal, Pattern
from py_runtime.tokens.section import Section

PreTokenizer = Callable[[str, bool], Iterable[str]]
Segment = tuple[int, int, bool]  # start, end, is it a match

GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
BEHAVIORS = ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
KEEPING_MATCHES = (("Isolated", False), ("Isolated", True), ("Removed", True))
PREPEND_SCHEMES = ("always", "first", "never")
_MAX_REMEMBERED = 20_000
_MAX_REMEMBERED_LENGTH = 256  # characters
LONG_PIECE = 1 << 16  # characters: of a longer one, words are cut off one by one as they are wanted


def build_pre_tokenizer(section: Section | None) -> PreTokenizer:
    """Build a pre-tokenizer.

    No section keeps a piece whole. An unknown kind is a TokenizerError.
    """
    if section is None:
        return lambda piece, starts_text: [piece]
    match section.kind:
        case "ByteLevel":
            return ByteLevel(
                section.get("add_prefix_space", bool), section.get("use_regex", bool, True)
            )
        case "Split":
            pattern = Pattern.from_section(Section.of(section.where, section.fields.get("pattern")))
            behavior = section.get("behavior", str)
            if behavior not in BEHAVIORS:
                raise section.error(f"behavior {behavior!r} is not supported")
            return Split(pattern, behavior, section.get("invert", bool))
        case "Digits":
            alone = section.get("individual_digits", bool)
            numeric = char_class(characters.numeric_characters())
            return Split(Pattern(numeric), "Isolated" if alone else "Contiguous")
        case "Metaspace":
            return build_metaspace(section)
        case "Whitespace":
            word = char_class(characters.word_characters())
            return Split(Pattern(rf"{word}+|[^{word[1:-1]}\s]+"), "Removed", inverted=True)
        case "WhitespaceSplit":
            return Split(Pattern(r"\s"), "Removed")
        case "BertPreTokenizer":
            return bert_words()
        case "Sequence":
            return Sequence(map(build_pre_tokenizer, section.sections("pretokenizers")))
        case _:
            raise section.unsupported()


def char_class(ranges: characters.Ranges) -> str:
    """Write the ranges in the form of a pattern."""
    return "[" + "".join(f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in ranges) + "]"


class Sequence:
    """A row of steps, each of which cuts what the one before it returned."""

    def __init__(self, steps: Iterable[PreTokenizer]) -> None:
        self.steps = list(steps)

    def __call__(self, piece: str, starts_text: bool) -> Iterable[str]:
        is_long = len(piece) > LONG_PIECE
        pieces: Iterable[str] = [piece]
        for step in self.steps:
            cut = cut_each(step, pieces, starts_text)
            pieces = cut if is_long else list(cut)
        return pieces


def cut_each(step: PreTokenizer, pieces: Iterable[str], starts_text: bool) -> Iterator[str]:
    """Yield the words that one step makes of the pieces before it."""
    for index, part in enumerate(pieces):
        yield from step(part, starts_text and index == 0) if part else [part]


class Split:
    """A cut at a pattern's matches; `behavior` says to which side a match belongs."""

    def __init__(self, pattern: Pattern, behavior: str, inverted: bool = False) -> None:
        self.pattern = pattern
        self.behavior = behavior
        self.inverted = inverted

    def __call__(self, piece: str, starts_text: bool) -> Iterable[str]:
        if len(piece) > LONG_PIECE and self.behavior == "Isolated":
            spans = isolate_matches(segments_of(self.pattern, piece, self.inverted))
            return (piece[start:end] for start, end in spans)
        matches = self.pattern.find_all(piece)
        if not matches and not self.inverted:
            return [piece]
        covered = sum(map(len, matches)) == len(piece) and all(matches)
        if covered and (self.behavior, self.inverted) in KEEPING_MATCHES:
            return matches  # so it is for the patterns of language models, on any text
        segments = list(segments_of(self.pattern, piece, self.inverted))
        return [piece[start:end] for start, end in SPLITTERS[self.behavior](segments)]


def segments_of(pattern: Pattern, piece: str, inverted: bool) -> Iterator[Segment]:
    """Yield the matches and what lies between them, from end to end."""
    at = 0
    for start, end in pattern.spans(piece):
        if at < start:
            yield at, start, inverted
        yield start, end, not inverted
        at = end
    if at < len(piece):
        yield at, len(piece), inverted


def remove_matches(segments: list[Segment]) -> list[tuple[int, int]]:
    """Leave the matches out."""
    kept = [(start, end) for start, end, is_match in segments if not is_match and start < end]
    is_beginning_gone = kept and kept[0][0] > 0
    return [(0, 0), *kept] if is_beginning_gone else kept


def isolate_matches(segments: Iterable[Segment]) -> Iterator[tuple[int, int]]:
    """Make each match a piece of its own."""
    return ((start, end) for start, end, _ in segments if start < end)


def join_segments(
    segments: Iterable[Segment], joins: Callable[[bool, bool], bool]
) -> Iterator[tuple[int, int]]:
    """Join a segment to the one before where joins(before is a match, this is a match)."""
    spans: list[tuple[int, int]] = []
    was_match = False
    for start, end, is_match in segments:
        if spans and joins(was_match, is_match):
            spans[-1] = (min(spans[-1][0], start), max(spans[-1][1], end))
        else:
            spans.append((start, end))
        was_match = is_match
    return ((start, end) for start, end in spans if start < end)


def merge_matches(segments: list[Segment]) -> Iterator[tuple[int, int]]:
    """Neighbouring matches are one piece."""
    return join_segments(segments, lambda was_match, is_match: was_match == is_match)


def merge_with_previous(segments: list[Segment]) -> Iterator[tuple[int, int]]:
    """Let a match end the piece before it."""
    return join_segments(segments, lambda was_match, is_match: is_match and not was_match)


def merge_with_next(segments: list[Segment]) -> Iterator[tuple[int, int]]:
    """Let a match begin the piece after it."""
    backwards = list(merge_with_previous(segments[::-1]))
    return iter(backwards[::-1])


SPLITTERS: dict[str, Callable[[list[Segment]], Iterable[tuple[int, int]]]] = {
    "Removed": remove_matches,
    "Isolated": isolate_matches,
    "Contiguous": merge_matches,
    "MergedWithPrevious": merge_with_previous,
    "MergedWithNext": merge_with_next,
}


class ByteLevel:
    """Words as strings of 256 letters, one for each byte of their UTF-8."""

    def __init__(self, add_prefix_space: bool, use_regex: bool) -> None:
        self.add_prefix_space = add_prefix_space
        self.split = Split(Pattern(GPT2_PATTERN), "Isolated") if use_regex else None
        self.letters_of = _RememberedLetters()

    def __call__(self, piece: str, starts_text: bool) -> Iterable[str]:
        if self.add_prefix_space and not piece.startswith(" "):
            piece = " " + piece
        words = self.split(piece, starts_text) if self.split else [piece]
        return map(self.letters_of.__getitem__, words)


class _RememberedLetters(dict[str, str]):
    def __missing__(self, word: str) -> str:
        letters = word.encode().decode("latin-1").translate(ALPHABET)
        if len(word) <= _MAX_REMEMBERED_LENGTH:
            if len(self) >= _MAX_REMEMBERED:
                self.clear()
            self[word] = letters
        return letters


class Metaspace:
    """A visible sign in the place of each space, and before the text or before every piece."""

    def __init__(self, sign: str, prepend_scheme: str, split: bool) -> None:
        self.sign = sign
        self.prepend_scheme = prepend_scheme
        self.split = Split(Literal(sign), "MergedWithNext") if split else None

    def __call__(self, piece: str, starts_text: bool) -> Iterable[str]:
        piece = piece.replace(" ", self.sign)
        wants_sign = self.prepend_scheme == "always" or (
            self.prepend_scheme == "first" and starts_text
        )
        if wants_sign and not piece.startswith(self.sign):
            piece = self.sign + piece
        return self.split(piece, starts_text) if self.split else [piece]


def build_metaspace(section: Section) -> Metaspace:
    """Build the pre-tokenizer; the section has the sign, its place, and whether to cut at it."""
    return Metaspace(
        section.get("replacement", str), prepend_scheme(section), section.get("split", bool, True)
    )


def prepend_scheme(section: Section) -> str:
    """Older files say add_prefix_space instead."""
    scheme = section.get("prepend_scheme", str, "always")
    if scheme not in PREPEND_SCHEMES:
        raise section.error(f"prepend_scheme {scheme!r} is not supported")
    if not section.get("add_prefix_space", bool, True) and scheme != "never":
        raise section.error("add_prefix_space is false, but prepend_scheme is not 'never'")
    return scheme
