// What weight kinds share. A weight_*.wgsl file says how a row is stored: `quants(row, octet)`
// gives eight columns as they are, `affine(row, octet)` their (scale, minimum).

fn dequantised(row: u32, octet: u32) -> mat2x4f {
  let values = quants(row, octet);
  let scale = affine(row, octet);
  return mat2x4f(values[0] * scale.x + scale.y, values[1] * scale.x + scale.y);
}

// The eight 4-bit values of a word, lowest nibble first.
fn unsigned_nibbles(word: u32) -> mat2x4f {
  let low = (vec4u(word) >> vec4u(0u, 4u, 8u, 12u)) & vec4u(15u);
  let high = (vec4u(word) >> vec4u(16u, 20u, 24u, 28u)) & vec4u(15u);
  return mat2x4f(vec4f(low), vec4f(high));
}

// Each nibble minus 8: with its top bit flipped it is that number in two's complement.
fn centred_nibbles(word: u32) -> mat2x4f {
  let flipped = vec4i(bitcast<i32>(word ^ 0x88888888u));
  let low = (flipped << vec4u(28u, 24u, 20u, 16u)) >> vec4u(28u);
  let high = (flipped << vec4u(12u, 8u, 4u, 0u)) >> vec4u(28u);
  return mat2x4f(vec4f(low), vec4f(high));
}

// The `at`-th f16 of a buffer of words.
fn half_of(word: u32, at: u32) -> f32 {
  let pair = unpack2x16float(word);
  return select(pair.x, pair.y, (at & 1u) == 1u);
}
