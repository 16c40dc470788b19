// octets_q8_0.wgsl by whole blocks: signed bytes as they are.
// needs: shared/weights/packed_values

const BYTE_UNIT = 1.0;

@group(0) @binding(0) var<storage, read> weight: array<vec4u>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;

struct WeightBlock {
  first: vec4u,
  second: vec4u,
  scale: f32,
}

fn load_block(row: u32, block: u32) -> WeightBlock {
  let at = row * (params.octets / 4u) + block;
  return WeightBlock(weight[2u * at], weight[2u * at + 1u], half_of(scales[at / 2u], at));
}

fn weight_bytes(held: WeightBlock, octet: u32) -> vec2u {
  let words = select(held.second, held.first, octet < 2u);
  return select(words.zw, words.xy, octet % 2u == 0u);
}

fn block_affine(held: WeightBlock) -> vec2f {
  return vec2f(held.scale, 0.0);
}

// Columns of x in the order of the words.
fn grouped(octet: mat2x4f) -> mat2x4f {
  return octet;
}
