// Quantised values unpacked from the words that hold them.
// needs: nothing

// Values become floats without shifts, which some compilers of software adapters execute one invocation
// after the other. Low bits are put under the exponent of a power of two so large that their lowest one
// counts 1, and the power is subtracted. High bits, which reach into the exponent, are converted as
// integers that are too large by a power of two.
const NIBBLES = vec4u(0xfu, 0xf0u, 0xf00u, 0xf000u);
const POWER_BITS = vec4u(0x4b000000u, 0x49000000u, 0x47000000u, 0x45000000u);
const POWERS = vec4f(8388608.0, 524288.0, 32768.0, 2048.0);

// The eight 4-bit values of a word, lowest nibble first, minus `less`.
fn nibbles_less(word: u32, less: f32) -> mat2x4f {
  let low = (vec4u(word) & NIBBLES) | POWER_BITS;
  let fifth = (word & 0xf0000u) | 0x43000000u;  // 128
  let sixth = f32(i32(word & 0xf00000u));
  let seventh = f32(i32(word & 0xf000000u));
  let last = f32(bitcast<i32>((word ^ 0x80000000u) & 0xf0000000u));  // 8 less, by the flipped sign bit
  return mat2x4f(
    bitcast<vec4f>(low) - (POWERS + less),
    vec4f(
      bitcast<f32>(fifth) - (128.0 + less),
      sixth * 0x1p-20 - less,
      seventh * 0x1p-24 - less,
      last * 0x1p-28 + (8.0 - less),
    ),
  );
}

fn unsigned_nibbles(word: u32) -> mat2x4f {
  return nibbles_less(word, 0.0);
}

// Each nibble minus 8.
fn centred_nibbles(word: u32) -> mat2x4f {
  return nibbles_less(word, 8.0);
}

// The four 8-bit values of a word, lowest byte first.
fn signed_bytes(word: u32) -> vec4f {
  let raised = word ^ 0x00808080u;  // the lower three bytes, by 128
  let low = (vec2u(raised) & vec2u(0xffu, 0xff00u)) | POWER_BITS.xz;
  let high = bitcast<vec2i>(vec2u(raised, word) & vec2u(0xff0000u, 0xff000000u));
  return vec4f(
    bitcast<vec2f>(low) - (POWERS.xz + 128.0),
    vec2f(high) * vec2f(0x1p-16, 0x1p-24) - vec2f(128.0, 0.0),
  );
}

// The `at`-th f16 of a buffer of words.
fn half_of(word: u32, at: u32) -> f32 {
  let pair = unpack2x16float(word);
  return select(pair.x, pair.y, (at & 1u) == 1u);
}
