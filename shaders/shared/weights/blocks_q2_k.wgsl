// Q2_K: crumbs, with 4-bit scales and minima for 16 columns, and an f16 each for 256.
// See blocks_q8_0.wgsl for the interface.
// weight: four vectors of crumbs; scales: sixteen bytes, then d and dmin as f16.
// needs: shared/weights/crumbs

const HALVES = 2u;
const ADDS = true;
const PAIRED = false;
const BYTE_UNIT = 1.0;

@group(0) @binding(0) var<storage, read> weight: array<vec4u>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;

struct WeightBlock {
  crumbs: vec2u,
  scales: u32,  // two bytes: a scale, and a minimum above it
  ends: u32,
}

fn load_block(row: u32, block: u32) -> WeightBlock {
  let eight = row * (params.shape.octets / 32u) + block / 8u;
  let place = block % 8u;
  return WeightBlock(
    crumbs_of(weight[4u * eight + place / 2u], place),
    scales[5u * eight + place / 2u] >> (16u * (place % 2u)),
    scales[5u * eight + 4u],
  );
}

fn weight_bytes(held: WeightBlock, octet: u32) -> vec2u {
  return top_crumbs(held.crumbs, octet) >> vec2u(6u);
}

fn half_affine(held: WeightBlock, half: u32) -> vec2f {
  let both = held.scales >> (8u * half);
  let ends = unpack2x16float(held.ends);
  return vec2f(ends.x * f32(both & 15u), -(ends.y * f32((both >> 4u) & 15u)));
}
