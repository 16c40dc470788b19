// Q5_K: Q4_K with a fifth bit. See blocks_q8_0.wgsl for the interface.
// weight: eight vectors of nibbles, two of fifth bits; scales: see k_scales.wgsl.
// needs: shared/weights/nibble_bytes, shared/weights/fifth_bits, shared/weights/k_scales

const HALVES = 1u;
const ADDS = true;
const PAIRED = false;
const BYTE_UNIT = 1.0;

@group(0) @binding(0) var<storage, read> weight: array<vec4u>;
@group(0) @binding(1) var<storage, read> scales: array<vec4u>;

struct WeightBlock {
  words: vec4u,
  facts: vec4u,
  bits: u32,
  place: u32,  // among eight
}

fn load_block(row: u32, block: u32) -> WeightBlock {
  let eight = row * (params.shape.octets / 32u) + block / 8u;
  let place = block % 8u;
  return WeightBlock(
    weight[10u * eight + place],
    scales[eight],
    weight[10u * eight + 8u + place / 4u][place % 4u],
    place,
  );
}

fn weight_bytes(held: WeightBlock, octet: u32) -> vec2u {
  return plain_bytes(held.words[octet]) | (top_bits(held.bits, octet) >> vec2u(3u));
}

fn half_affine(held: WeightBlock, half: u32) -> vec2f {
  return k_affine(held.facts, held.place);
}
