// Columns of x as integers, split into int8 planes: signed bytes. The columns of a block share a scale.
// needs: nothing

const TOP = 32512.0;  // 127 * 256: the largest column of a block is scaled to this
// Adding this rounds a float to an integer and leaves that in its lowest bits.
const ROUNDER = 12582912.0;

// The lowest 16 bits of four integers in two words: x and z in one, y and w in the other.
fn low_halves(values: vec4f) -> vec2u {
  let bits = bitcast<vec4u>(values);
  return (bits.xy & vec2u(0xffffu)) | (bits.zw << vec2u(16u));
}

fn low_bytes(words: vec2u) -> u32 {
  return (words.x & 0x00ff00ffu) | ((words.y & 0x00ff00ffu) << 8u);
}

fn high_bytes(words: vec2u) -> u32 {
  return ((words.x >> 8u) & 0x00ff00ffu) | (words.y & 0xff00ff00u);
}

// Eight columns of at most TOP: the high bytes of the first four, of the others, then the low bytes.
fn two_planes(octet: mat2x4f) -> vec4u {
  // With 128 added the low byte lies between 0 and 255 and carries into the high one.
  let first = low_halves(octet[0] + (ROUNDER + 128.0));
  let second = low_halves(octet[1] + (ROUNDER + 128.0));
  let low = vec2u(low_bytes(first), low_bytes(second)) ^ vec2u(0x80808080u);
  return vec4u(high_bytes(first), high_bytes(second), low);
}
