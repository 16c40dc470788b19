// Q5_1: (nibble | bit << 4), times an f16 scale, plus a minimum. See blocks_q8_0.wgsl for the interface.
// scales: (scale and minimum as f16, the fifth bits) a block.
// needs: shared/weights/nibble_bytes, shared/weights/fifth_bits

const HALVES = 1u;
const ADDS = true;
const PAIRED = false;
const BYTE_UNIT = 1.0;

@group(0) @binding(0) var<storage, read> weight: array<vec4u>;
@group(0) @binding(1) var<storage, read> scales: array<vec2u>;

struct WeightBlock {
  words: vec4u,
  facts: vec2u,
}

fn load_block(row: u32, block: u32) -> WeightBlock {
  let at = row * (params.shape.octets / 4u) + block;
  return WeightBlock(weight[at], scales[at]);
}

fn weight_bytes(held: WeightBlock, octet: u32) -> vec2u {
  return plain_bytes(held.words[octet]) | (top_bits(held.facts.y, octet) >> vec2u(3u));
}

fn half_affine(held: WeightBlock, half: u32) -> vec2f {
  return unpack2x16float(held.facts.x);
}
