// Q5_0: (nibble | bit << 4) - 16, times an f16 scale. See blocks_q8_0.wgsl for the interface.
// scales: three words for two blocks: the fifth bits of one, both scales, the fifth bits of the other.
// needs: shared/weights/packed_values, shared/weights/fifth_bits

const HALVES = 1u;
const ADDS = false;
const PAIRED = false;
const BYTE_UNIT = 1.0 / 8.0;

@group(0) @binding(0) var<storage, read> weight: array<vec4u>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;

struct WeightBlock {
  words: vec4u,
  bits: u32,
  scale: f32,
}

fn load_block(row: u32, block: u32) -> WeightBlock {
  let at = row * (params.shape.octets / 4u) + block;
  let first = 3u * (at / 2u);
  return WeightBlock(
    weight[at],
    scales[first + 2u * (at % 2u)],
    half_of(scales[first + 1u], at),
  );
}

// 8 * (value - 16).
fn weight_bytes(held: WeightBlock, octet: u32) -> vec2u {
  let word = held.words[octet];
  let low = vec2u(word << 3u, word >> 1u) & vec2u(0x78787878u);
  return (low | top_bits(held.bits, octet)) ^ vec2u(0x80808080u);
}

fn half_affine(held: WeightBlock, half: u32) -> vec2f {
  return vec2f(held.scale, 0.0);
}
