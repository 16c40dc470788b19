// Quantised values out of the words they are packed in.
// needs: nothing

// 4-bit values become floats without a conversion: each is put, where it lies, under the exponent of
// a power of two so large that its lowest bit counts 1, and the power is taken away again.
const NIBBLES = vec4u(0xfu, 0xf0u, 0xf00u, 0xf000u);
const POWER_BITS = vec4u(0x4b000000u, 0x49000000u, 0x47000000u, 0x45000000u);
const POWERS = vec4f(8388608.0, 524288.0, 32768.0, 2048.0);

// The eight 4-bit values of a word, lowest nibble first.
fn unsigned_nibbles(word: u32) -> mat2x4f {
  let low = (vec4u(word) & NIBBLES) | POWER_BITS;
  let high = (vec4u(word >> 16u) & NIBBLES) | POWER_BITS;
  return mat2x4f(bitcast<vec4f>(low) - POWERS, bitcast<vec4f>(high) - POWERS);
}

// Each nibble minus 8.
fn centred_nibbles(word: u32) -> mat2x4f {
  let low = (vec4u(word) & NIBBLES) | POWER_BITS;
  let high = (vec4u(word >> 16u) & NIBBLES) | POWER_BITS;
  return mat2x4f(bitcast<vec4f>(low) - (POWERS + 8.0), bitcast<vec4f>(high) - (POWERS + 8.0));
}

// The four 8-bit values of a word, lowest byte first.
fn signed_bytes(word: u32) -> vec4f {
  return vec4f((vec4i(bitcast<i32>(word)) << vec4u(24u, 16u, 8u, 0u)) >> vec4u(24u));
}

// The `at`-th f16 of a buffer of words.
fn half_of(word: u32, at: u32) -> f32 {
  let pair = unpack2x16float(word);
  return select(pair.x, pair.y, (at & 1u) == 1u);
}
