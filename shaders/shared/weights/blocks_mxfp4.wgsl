// MXFP4: 4-bit floats, times a power of two. See blocks_q8_0.wgsl for the interface.
// scales: exponents, a byte a block, from 2^-127 to 2^127. GPUs may flush f32 below 2^-126 to zero, so scales
// are twice as large and bytes count quarters, which products apply last: only values looked up that are as
// small themselves are lost. For the largest exponent the bytes are doubled instead, as no f32 is 2^128.
// needs: nothing

const HALVES = 1u;
const ADDS = false;
const PAIRED = false;
const BYTE_UNIT = 1.0 / 4.0;
const LARGEST = 254u;  // 255 stands for NaN, which no file has

@group(0) @binding(0) var<storage, read> weight: array<vec4u>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;

struct WeightBlock {
  words: vec4u,
  exponent: u32,
}

fn load_block(row: u32, block: u32) -> WeightBlock {
  let at = row * (params.shape.octets / 4u) + block;
  return WeightBlock(weight[at], (scales[at / 4u] >> (8u * (at % 4u))) & 0xffu);
}

// Twice the values of four nibbles, one a byte, as signed bytes: sign, two bits of exponent, one of
// mantissa. Codes 0 1 2 3 are themselves; codes 4 5 6 7 are 4 6 8 12: twice their lower two bits and 4, and
// the last has 2 more.
fn twice_fp4(nibbles: u32) -> u32 {
  let low = nibbles & 0x03030303u;
  let large = ((nibbles >> 2u) & 0x01010101u) * 0xffu;
  let both = nibbles & (nibbles >> 1u) & 0x01010101u;
  let size = low + (large & (low + 0x04040404u + 2u * both));
  let negative = ((nibbles >> 3u) & 0x01010101u) * 0xffu;
  return select_bits(size, (0x80808080u - size) ^ 0x80808080u, negative);
}

fn select_bits(zeros: u32, ones: u32, mask: u32) -> u32 {
  return zeros ^ ((zeros ^ ones) & mask);
}

// The values of the low nibbles, then those of the high ones.
fn weight_bytes(held: WeightBlock, octet: u32) -> vec2u {
  let word = held.words[octet];
  let bytes = vec2u(twice_fp4(word & 0x0f0f0f0fu), twice_fp4((word >> 4u) & 0x0f0f0f0fu));
  return select(bytes, (bytes << vec2u(1u)) & vec2u(0xfefefefeu), held.exponent >= LARGEST);
}

fn half_affine(held: WeightBlock, half: u32) -> vec2f {
  return vec2f(bitcast<f32>(min(held.exponent + 1u, LARGEST) << 23u), 0.0);
}
