// The bit above four others, for 32 columns in a word: bit 8k + w is that of column 4w + k.
// needs: nothing

// Moves the bits of an octet to the highest bit of each byte of its words.
fn top_bits(bits: u32, octet: u32) -> vec2u {
  return (vec2u(bits >> (2u * octet), bits >> (2u * octet + 1u)) << vec2u(7u)) & vec2u(0x80808080u);
}
