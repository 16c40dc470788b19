// IQ4_NL: nibbles that index a table, times an f16 scale. See blocks_q8_0.wgsl for the interface.
// scales: f16, two a word.
// needs: shared/weights/packed_values, shared/weights/nibble_tables

const HALVES = 1u;
const ADDS = false;
const PAIRED = false;
const BYTE_UNIT = 1.0;

@group(0) @binding(0) var<storage, read> weight: array<vec4u>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;

struct WeightBlock {
  words: vec4u,
  scale: f32,
}

fn load_block(row: u32, block: u32) -> WeightBlock {
  let at = row * (params.shape.octets / 4u) + block;
  return WeightBlock(weight[at], half_of(scales[at / 2u], at));
}

fn weight_bytes(held: WeightBlock, octet: u32) -> vec2u {
  return table_bytes(held.words[octet]);
}

fn half_affine(held: WeightBlock, half: u32) -> vec2f {
  return vec2f(held.scale, 0.0);
}
