// q4gsw in whole blocks, where rows and groups are multiples of 32 columns; octets_q4gsw.wgsl has the same by
// octets. See blocks_q8_0.wgsl for the interface.
// needs: shared/weights/nibble_bytes, @row_scales

const HALVES = 1u;
const ADDS = false;
const PAIRED = true;
const BYTE_UNIT = 1.0 / 16.0;

@group(0) @binding(0) var<storage, read> weight: array<vec4u>;
@group(0) @binding(1) var<storage, read> scales: array<f32>;

struct WeightBlock {
  words: vec4u,
  scale: f32,
}

fn load_block(row: u32, block: u32) -> WeightBlock {
  let group = 4u * block / params.shape.octets_per_group;
  let of_row = row_scales(row);
  return WeightBlock(
    weight[row * (params.shape.octets / 4u) + block],
    scales[of_row.x + group * of_row.y],
  );
}

fn weight_bytes(held: WeightBlock, octet: u32) -> vec2u {
  return centred_bytes(held.words[octet]);
}

fn half_affine(held: WeightBlock, half: u32) -> vec2f {
  return vec2f(held.scale, 0.0);
}
