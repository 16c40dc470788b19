"""Ten thousand lines that tokenizers stumble over, the same ones every time."""

# ruff: noqa: RUF001 (characters that look like others are the point)

import unicodedata
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

SENTENCES = Path(__file__).with_name("sentences.txt").read_text(encoding="utf-8").splitlines()
SIZE = 10_000

# First and last code point of what a line of letters is drawn from.
ALPHABETS = """
20-7E A0-17F 180-24F 250-2AF 370-3FF 400-52F 531-58A 591-5F4 600-6FF 700-74F 750-77F 780-7B1
7C0-7FF 840-85E 860-86A 870-8FF 900-97F 980-9FE A01-A76 A81-AFF B01-B77 B82-BFA C00-C7F C80-CF3
D00-D7F D81-DF4 E01-E5B E81-EDF F00-FDA 1000-109F 10A0-10FF 1100-11FF 1200-139F 13A0-13FD 1400-167F
1680-169C 16A0-16F8 1780-17F9 1800-18AA 1950-19DF 1A00-1A9F 1AB0-1ACE 1B00-1B7F 1BC0-1C7F 1C80-1CBF
1D00-1DFF 1E00-1FFE 2000-206F 2070-20C0 20D0-20F0 2100-218B 2190-23FF 2400-24FF 2500-27BF 2800-28FF
2900-2BFF 2C00-2DDE 2DE0-2E5D 2E80-2FDF 2FF0-303F 3041-30FF 3105-318E 3200-33FF 3400-4DBF 4E00-9FFF
A000-A4C6 A4D0-A6F7 A700-A7FF A800-A8D9 A8E0-AA5F AA60-ABF9 AC00-D7A3 D7B0-D7FB E000-F8FF F900-FAD9
FB00-FB4F FB50-FDFF FE00-FE0F FE20-FE2F FE30-FEFF FF01-FFEE FFF9-FFFF 10000-100FA 10280-103D5
10400-104FB 10500-107BA 10800-109BC 10A00-10AF6 10B00-10BAF 10C00-10CFF 10D00-10EFF 10F00-10FF6
11000-1107F 11080-1124F 11280-1137F 11380-113E2 11400-1145F 11480-116CF 11700-1183B 118A0-11959
119A0-11AF8 11B00-11D98 11EE0-11FFF 12000-12543 12F90-13455 13460-143FA 14400-14646 16100-16139
16800-16ABE 16AC0-16B8F 16D40-16D79 16E40-16EB8 16F00-16FF6 17000-18CD5 1AFF0-1B2FB 1BC00-1BCA3
1CC00-1CEB3 1CF00-1D245 1D2C0-1D378 1D400-1D7FF 1D800-1DAAF 1DF00-1E08F 1E100-1E2FF 1E4D0-1E5FF
1E7E0-1E95F 1EC71-1EEF1 1F000-1F1FF 1F200-1F3FA 1F400-1F64F 1F680-1F8FF 1F900-1FAFF 1FB00-1FBF9
20000-2A6DF 2A700-2EE5D 2F800-2FA1D 30000-323AF 323B0-3347F E0001-E007F E0100-E01EF F0000-F00FF
"""
WHITESPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2003\u2007\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
INVISIBLE = "\x00\x01\x1b\x1c\x1d\x1e\x1f\x7f\x80\x9f\xad\u200b\u200c\u200d\u200e\u202e\u2060\ufeff"
MARKS = [chr(code) for code in (*range(0x300, 0x34F), 0x5B4, 0x64B, 0x93C, 0xC3C, 0x1AC1, 0x1E4EC)]
COMPOSABLE = (
    "aeiouAEIOUnNsScCγωАИіक\u1100\u1161\u11a8\uac00\u0934\u09c7\u1b05\u3046\u212b\U0001d157"
)
EMOJI = "😀😂🤖👍👩👨🧑👶🐱🐶🌍🚀🔥❤☎✈⚽🎉🇩🇪🇫🇷🇯🇵🏳🏴👁🗨"
EMOJI_PARTS = ("\u200d", "\ufe0f", "\u20e3", *(chr(code) for code in range(0x1F3FB, 0x1F400)))
LOOK_ALIKES = (
    "<|im_start|>", "<|im_end|>", "<|im_start", "im_end|>", "<|endoftext|>", "<|end oftext|>",
    "<|begin_of_text|>", "<|start_header_id|>", "<|eot_id|>", "<|reserved_special_token_0|>", "<s>",
    "</s>", "<unk>", "<S>", "< s>", "[INST]", "[/INST]", "<<SYS>>", "<pad>", "<0x0A>", "<0xE2>",
    "<0xZZ>", "▁", "▁▁", "Ġ", "ĠĠ", "Ċ", "Âł", "##", "</w>", "<mask>", "[word]", "[left]",
    "[right]", "[norm]", "[Norm]", "[ＮＯＲＭ]", "<tool_call>", "</tool_call>", "<think>", "�",
)  # fmt: skip
SUFFIXES = ("'s", "'S", "'ſ", "'t", "'RE", "'ve", "'Ll", "'d", "'M", "’s", "''s", "'sx", "'")
CODE = (
    "if", "else:", "return", "for", "x", "i", "foo_bar", "fooBar", "=", "==", "+=", "->", "=>",
    "::", "(", ")", "[", "]", "{", "}", ";", ",", ".", '"text"', "'c'", "\\n", "0x1F", "1e-9", "//",
    "/*", "*/", "#", "<", ">", "<=", "&&", "||", "!", "?", "@", "$", "%", "^", "~", "`", "|", "\\",
    "\t",
)  # fmt: skip


@cache
def lines() -> list[str]:
    rng = Random(20_240_229)
    made = list(SENTENCES)
    made += (unicodedata.normalize(form, text) for form in ("NFD", "NFKC") for text in SENTENCES)
    made += (text.upper() for text in SENTENCES)
    made += (f"{item} {item}{item}x {item.lower()}" for item in LOOK_ALIKES)
    makers = list(MAKERS)
    while len(made) < SIZE:
        parts = [rng.choice(makers)(rng) for _ in range(rng.choice((1, 1, 2, 3)))]
        made.append(rng.choice(("", " ", "\n", "  ")).join(parts))
    return made[:SIZE]


def letters(rng: Random) -> str:
    first, last = (int(end, 16) for end in rng.choice(ALPHABETS.split()).split("-"))
    chars = [chr(rng.randint(first, last)) for _ in range(rng.randint(1, 40))]
    return "".join(char + (" " if rng.random() < 0.2 else "") for char in chars)


def anything(rng: Random) -> str:
    codes = (
        rng.choice((rng.randrange(0xD800), rng.randrange(0xE000, 0x110000))) for _ in range(20)
    )
    return "".join(map(chr, codes))


def pieces_of_sentences(rng: Random) -> str:
    words = [word for _ in range(3) for word in rng.choice(SENTENCES).split(" ")]
    return " ".join(rng.sample(words, min(len(words), rng.randint(3, 20))))


def whitespace(rng: Random) -> str:
    runs = [rng.choice(WHITESPACE) * rng.choice((1, 1, 2, 3, 8)) for _ in range(rng.randint(1, 6))]
    words = [rng.choice(("", "a", "word", "9", "!", "é", "你")) for _ in runs]
    return "".join(word + run for word, run in zip(words, runs, strict=True))


def invisible(rng: Random) -> str:
    return "".join(rng.choice(("a", " ", "z9", *INVISIBLE)) for _ in range(rng.randint(1, 12)))


def marked(rng: Random) -> str:
    return "".join(
        rng.choice(COMPOSABLE) + "".join(rng.choices(MARKS, k=rng.randint(0, 4)))
        for _ in range(rng.randint(1, 8))
    )


def emoji(rng: Random) -> str:
    return "".join(
        rng.choice(EMOJI) + "".join(rng.choices(EMOJI_PARTS, k=rng.choice((0, 0, 1, 2))))
        for _ in range(rng.randint(1, 8))
    )


def look_alikes(rng: Random) -> str:
    gaps = ("", " ", "  ", "\t", "\n", "a", "Z", "_", "\u00a0", ".", "é")
    return "".join(rng.choice(gaps) + rng.choice(LOOK_ALIKES) for _ in range(rng.randint(1, 5)))


def contractions(rng: Random) -> str:
    words = ("I", "we", "THEY", "él", "it", "9", "ſ", "x_", "人")
    return " ".join(rng.choice(words) + rng.choice(SUFFIXES) for _ in range(rng.randint(1, 6)))


def numbers(rng: Random) -> str:
    zeros = (0x30, 0x660, 0x966, 0xFF10, 0x1D7CE, 0x10D40, 0x11DE0, 0x2150, 0x2460, 0xB2)
    zero = rng.choice(zeros)
    digits = "".join(chr(zero + rng.randrange(10)) for _ in range(rng.randint(1, 24)))
    return rng.choice((digits, f"{digits[:3]}.{digits[3:]}", f"-{digits}e9", f"v{digits}b"))


def code(rng: Random) -> str:
    indent = rng.choice(("", "\t", "    ", "        ", "\t\t"))
    return indent + rng.choice(("", " ")).join(rng.choices(CODE, k=rng.randint(3, 20)))


def long_words(rng: Random) -> str:
    alphabet = rng.choice(
        ("a", "ab", "the", "abcdefghijklmnopqrstuvwxyz", "0123456789abcdef", "日本")
    )
    return "".join(rng.choices(alphabet, k=rng.choice((30, 100, 400))))


MAKERS: tuple[Callable[[Random], str], ...] = (
    letters, letters, letters, anything, pieces_of_sentences, pieces_of_sentences, whitespace,
    invisible, marked, emoji, look_alikes, contractions, numbers, code, long_words,
)  # fmt: skip
