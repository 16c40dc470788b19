// Q4_1 in whole blocks; octets_q4_1.wgsl has the same by octets. See blocks_q8_0.wgsl for the interface.
// needs: shared/weights/nibble_bytes

const HALVES = 1u;
const ADDS = true;
const PAIRED = true;
const BYTE_UNIT = 1.0;

@group(0) @binding(0) var<storage, read> weight: array<vec4u>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;

struct WeightBlock {
  words: vec4u,
  affine: u32,
}

fn load_block(row: u32, block: u32) -> WeightBlock {
  let at = row * (params.shape.octets / 4u) + block;
  return WeightBlock(weight[at], scales[at]);
}

fn weight_bytes(held: WeightBlock, octet: u32) -> vec2u {
  return plain_bytes(held.words[octet]);
}

fn half_affine(held: WeightBlock, half: u32) -> vec2f {
  return unpack2x16float(held.affine);
}
