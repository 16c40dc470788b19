// Eight 4-bit values of a word as signed bytes: the low nibbles first, then the high ones.
// needs: nothing

// 16 * (nibble - 8): a BYTE_UNIT of 1 / 16.
fn centred_bytes(word: u32) -> vec2u {
  return (vec2u(word << 4u, word) & vec2u(0xf0f0f0f0u)) ^ vec2u(0x80808080u);
}

fn plain_bytes(word: u32) -> vec2u {
  return vec2u(word, word >> 4u) & vec2u(0x0f0f0f0fu);
}
