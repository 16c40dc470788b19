// Q6_K: (nibble | crumb << 4) - 32, with 8-bit scales for 16 columns and an f16 for 256.
// See blocks_q8_0.wgsl for the interface.
// weight: eight vectors of nibbles, four of crumbs; scales: sixteen bytes and an f16.
// needs: shared/weights/crumbs

const HALVES = 2u;
const ADDS = false;
const PAIRED = false;
const BYTE_UNIT = 1.0 / 4.0;

@group(0) @binding(0) var<storage, read> weight: array<vec4u>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;

struct WeightBlock {
  words: vec4u,
  crumbs: vec2u,
  scales: u32,  // two bytes
  scale: f32,
}

fn scale_half(at: u32) -> u32 {
  return scales[at / 2u] >> (16u * (at % 2u));
}

fn load_block(row: u32, block: u32) -> WeightBlock {
  let eight = row * (params.shape.octets / 32u) + block / 8u;
  let place = block % 8u;
  return WeightBlock(
    weight[12u * eight + place],
    crumbs_of(weight[12u * eight + 8u + place / 2u], place),
    scale_half(9u * eight + place),
    unpack2x16float(scale_half(9u * eight + 8u)).x,
  );
}

// 4 * (value - 32).
fn weight_bytes(held: WeightBlock, octet: u32) -> vec2u {
  let word = held.words[octet];
  let low = vec2u(word << 2u, word >> 2u) & vec2u(0x3c3c3c3cu);
  return (low | top_crumbs(held.crumbs, octet)) ^ vec2u(0x80808080u);
}

fn half_affine(held: WeightBlock, half: u32) -> vec2f {
  let signed = bitcast<i32>(held.scales << (24u - 8u * half)) >> 24u;
  return vec2f(held.scale * f32(signed), 0.0);
}
