// MXFP4: 4-bit floats, times a power of two.
// blocks_q8_0.wgsl says what such a file gives.
// scales: exponents, a byte a block.
// needs: shared/weights/nibble_tables

const HALVES = 1u;
const ADDS = false;
const PAIRED = false;
const BYTE_UNIT = 1.0 / 2.0;

@group(0) @binding(0) var<storage, read> weight: array<vec4u>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;

struct WeightBlock {
  words: vec4u,
  exponent: u32,
}

fn load_block(row: u32, block: u32) -> WeightBlock {
  let at = row * (params.octets / 4u) + block;
  return WeightBlock(weight[at], (scales[at / 4u] >> (8u * (at % 4u))) & 0xffu);
}

fn weight_bytes(held: WeightBlock, octet: u32) -> vec2u {
  return table_bytes(TWICE_FP4, held.words[octet]);
}

fn half_affine(held: WeightBlock, half: u32) -> vec2f {
  return vec2f(bitcast<f32>(held.exponent << 23u), 0.0);
}
