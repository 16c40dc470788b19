// Q3_K: (crumb | bit << 2) - 4, with 6-bit scales for 16 columns and an f16 for 256.
// See blocks_q8_0.wgsl for the interface.
// weight: four vectors of crumbs, two of bits; scales: seven words for 512 columns, three, then the f16 of
// both halves, then three.
// needs: shared/weights/packed_values, shared/weights/crumbs, shared/weights/fifth_bits

const HALVES = 2u;
const ADDS = false;
const PAIRED = false;
const BYTE_UNIT = 1.0 / 32.0;

@group(0) @binding(0) var<storage, read> weight: array<vec4u>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;

struct WeightBlock {
  crumbs: vec2u,
  bits: u32,
  low: u32,  // four bits of the scales, a byte apart
  high: u32,  // the two bits above
  scale: f32,
}

fn load_block(row: u32, block: u32) -> WeightBlock {
  let eight = row * (params.shape.octets / 32u) + block / 8u;
  let place = block % 8u;
  let pair = 7u * (eight / 2u);
  let first = pair + 4u * (eight % 2u);
  let byte = 16u * (place % 2u);
  return WeightBlock(
    crumbs_of(weight[6u * eight + place / 2u], place),
    weight[6u * eight + 4u + place / 4u][place % 4u],
    scales[first + place % 4u / 2u] >> (byte + 4u * (place / 4u)),
    scales[first + 2u] >> (byte + 2u * (place / 2u)),
    half_of(scales[pair + 3u], eight),
  );
}

// 32 * (value - 4).
fn weight_bytes(held: WeightBlock, octet: u32) -> vec2u {
  let low = top_crumbs(held.crumbs, octet) >> vec2u(1u);
  return (low | top_bits(held.bits, octet)) ^ vec2u(0x80808080u);
}

fn half_affine(held: WeightBlock, half: u32) -> vec2f {
  let low = (held.low >> (8u * half)) & 15u;
  let high = (held.high >> (8u * half)) & 3u;
  return vec2f(held.scale * (f32(low | (high << 4u)) - 32.0), 0.0);
}
