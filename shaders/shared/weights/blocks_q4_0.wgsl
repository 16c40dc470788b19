// octets_q4_0.wgsl by whole blocks.
// needs: shared/weights/packed_values, shared/weights/nibble_blocks

@group(0) @binding(0) var<storage, read> weight: array<vec4u>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;

struct WeightBlock {
  words: vec4u,
  scale: f32,
}

fn load_block(row: u32, block: u32) -> WeightBlock {
  let at = row * (params.octets / 4u) + block;
  return WeightBlock(weight[at], half_of(scales[at / 2u], at));
}

fn weight_bytes(held: WeightBlock, octet: u32) -> vec2u {
  return nibble_bytes(held.words[octet]);
}

fn block_affine(held: WeightBlock) -> vec2f {
  return vec2f(held.scale, 0.0);
}
