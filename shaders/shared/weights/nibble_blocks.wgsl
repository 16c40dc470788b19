// Blocks of 4-bit values, as signed bytes: 16 * (nibble - 8), the even ones of eight columns in one
// word and the odd ones in another, where two masks put them.
// needs: nothing

const BYTE_UNIT = 1.0 / 16.0;

fn nibble_bytes(word: u32) -> vec2u {
  return (vec2u(word << 4u, word) & vec2u(0xf0f0f0f0u)) ^ vec2u(0x80808080u);
}

// Columns of x in the order of these words.
fn grouped(octet: mat2x4f) -> mat2x4f {
  return mat2x4f(vec4f(octet[0].xz, octet[1].xz), vec4f(octet[0].yw, octet[1].yw));
}
