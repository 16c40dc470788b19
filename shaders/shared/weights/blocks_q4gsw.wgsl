// octets_q4gsw.wgsl by whole blocks: rows and groups are multiples of 32 columns.
// needs: shared/weights/nibble_blocks, @scale_place

@group(0) @binding(0) var<storage, read> weight: array<vec4u>;
@group(0) @binding(1) var<storage, read> scales: array<f32>;

struct WeightBlock {
  words: vec4u,
  scale: f32,
}

fn load_block(row: u32, block: u32) -> WeightBlock {
  let group = 4u * block / params.octets_per_group;
  return WeightBlock(
    weight[row * (params.octets / 4u) + block],
    scales[scale_place(row, group)],
  );
}

fn weight_bytes(held: WeightBlock, octet: u32) -> vec2u {
  return nibble_bytes(held.words[octet]);
}

fn block_affine(held: WeightBlock) -> vec2f {
  return vec2f(held.scale, 0.0);
}
