// IQ4_XS: IQ4_NL's nibbles, with 6-bit scales for 32 columns and an f16 for 256.
// See blocks_q8_0.wgsl for the interface.
// scales: (the f16 and the upper two bits of the scales, their lower four bits).
// needs: shared/weights/nibble_tables

const HALVES = 1u;
const ADDS = false;
const PAIRED = false;
const BYTE_UNIT = 1.0;

@group(0) @binding(0) var<storage, read> weight: array<vec4u>;
@group(0) @binding(1) var<storage, read> scales: array<vec2u>;

struct WeightBlock {
  words: vec4u,
  facts: vec2u,
  place: u32,  // among eight
}

fn load_block(row: u32, block: u32) -> WeightBlock {
  let at = row * (params.shape.octets / 4u) + block;
  return WeightBlock(weight[at], scales[at / 8u], block % 8u);
}

fn weight_bytes(held: WeightBlock, octet: u32) -> vec2u {
  return table_bytes(held.words[octet]);
}

fn half_affine(held: WeightBlock, half: u32) -> vec2f {
  let low = (held.facts.y >> (4u * held.place)) & 15u;
  let high = (held.facts.x >> (16u + 2u * held.place)) & 3u;
  return vec2f(unpack2x16float(held.facts.x).x * (f32(low | (high << 4u)) - 32.0), 0.0);
}
