// What weight kinds share. A weight_*.wgsl file says how a row is stored: `quants(row, octet)`
// gives eight columns as they are, `sixteen(row, pair)` those of two octets that lie side by side,
// `affine(row, octet)` their (scale, minimum).

struct Sixteen {
  low: mat2x4f,
  high: mat2x4f,
}

fn dequantised(row: u32, octet: u32) -> mat2x4f {
  let values = quants(row, octet);
  let scale = affine(row, octet);
  return mat2x4f(values[0] * scale.x + scale.y, values[1] * scale.x + scale.y);
}

// 4-bit values become floats without a conversion: each is put, where it lies, under the exponent of
// a power of two so large that its lowest bit counts 1, and the power is taken away again.
const NIBBLES = vec4u(0xfu, 0xf0u, 0xf00u, 0xf000u);
const POWER_BITS = vec4u(0x4b000000u, 0x49000000u, 0x47000000u, 0x45000000u);
const POWERS = vec4f(8388608.0, 524288.0, 32768.0, 2048.0);

// Or by conversions of bytes: which is quicker depends on the device and on the kernel around it.
override BY_BYTES: bool = false;

// The eight 4-bit values of a word, lowest nibble first.
fn unsigned_nibbles(word: u32) -> mat2x4f {
  if (BY_BYTES) {
    return converted_nibbles(word);
  }
  let low = (vec4u(word) & NIBBLES) | POWER_BITS;
  let high = (vec4u(word >> 16u) & NIBBLES) | POWER_BITS;
  return mat2x4f(bitcast<vec4f>(low) - POWERS, bitcast<vec4f>(high) - POWERS);
}

// Each nibble minus 8.
fn centred_nibbles(word: u32) -> mat2x4f {
  if (BY_BYTES) {
    let values = converted_nibbles(word);
    return mat2x4f(values[0] - 8.0, values[1] - 8.0);
  }
  let low = (vec4u(word) & NIBBLES) | POWER_BITS;
  let high = (vec4u(word >> 16u) & NIBBLES) | POWER_BITS;
  return mat2x4f(bitcast<vec4f>(low) - (POWERS + 8.0), bitcast<vec4f>(high) - (POWERS + 8.0));
}

fn converted_nibbles(word: u32) -> mat2x4f {
  let even = vec4f(unpack4xU8(word & 0x0f0f0f0fu));
  let odd = vec4f(unpack4xU8((word >> 4u) & 0x0f0f0f0fu));
  return mat2x4f(
    vec4f(even.x, odd.x, even.y, odd.y),
    vec4f(even.z, odd.z, even.w, odd.w),
  );
}

// The `at`-th f16 of a buffer of words.
fn half_of(word: u32, at: u32) -> f32 {
  let pair = unpack2x16float(word);
  return select(pair.x, pair.y, (at & 1u) == 1u);
}
