// Q4_K: nibbles, with 6-bit scales and minima for 32 columns, and an f16 each for 256.
// See blocks_q8_0.wgsl for the interface.
// scales: see k_scales.wgsl.
// needs: shared/weights/nibble_bytes, shared/weights/k_scales

const HALVES = 1u;
const ADDS = true;
const PAIRED = false;
const BYTE_UNIT = 1.0;

@group(0) @binding(0) var<storage, read> weight: array<vec4u>;
@group(0) @binding(1) var<storage, read> scales: array<vec4u>;

struct WeightBlock {
  words: vec4u,
  facts: vec4u,
  place: u32,  // among eight
}

fn load_block(row: u32, block: u32) -> WeightBlock {
  let at = row * (params.shape.octets / 4u) + block;
  return WeightBlock(weight[at], scales[at / 8u], block % 8u);
}

fn weight_bytes(held: WeightBlock, octet: u32) -> vec2u {
  return plain_bytes(held.words[octet]);
}

fn half_affine(held: WeightBlock, half: u32) -> vec2f {
  return k_affine(held.facts, held.place);
}
