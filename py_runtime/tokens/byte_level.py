"""The letters that byte-level tokenizers write bytes with, so that every byte is visible."""

_VISIBLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_HIDDEN = [byte for byte in range(256) if byte not in _VISIBLE]

# Byte -> letter, for str.translate. The other bytes take the first letters beyond one byte.
ALPHABET = {byte: chr(256 + index) for index, byte in enumerate(_HIDDEN)}
_BYTE_OF = {chr(byte): byte for byte in _VISIBLE} | {
    letter: byte for byte, letter in ALPHABET.items()
}


def bytes_of(letters: str) -> bytes:
    """Return the bytes that `letters` stand for; a token of other characters stands for itself."""
    try:
        return bytes([_BYTE_OF[letter] for letter in letters])
    except KeyError:
        return letters.encode()
