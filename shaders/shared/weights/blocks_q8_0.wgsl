// Q8_0 in whole blocks: signed bytes as they are stored.
//
// This is the interface of every file blocks_*. A row is blocks of 32 columns, a block four octets. The value
// of column c is
//   byte * BYTE_UNIT * half_affine(held, c / (32 / HALVES)).x + half_affine(…).y
//   HALVES        1, or 2 where columns 0 to 15 of a block have one scale and 16 to 31 another
//   ADDS          whether anything is ever added; otherwise y is 0
//   BYTE_UNIT     a power of two
//   load_block    returns the WeightBlock of a row: all loads from memory happen here, and can be prefetched
//   weight_bytes  returns an octet as two words of four signed bytes
//   half_affine   returns (scale, addend) of a half; half is 0 where HALVES is 1
//   PAIRED        whether an octet's first word has its even columns, not its first four (order.wgsl
//                 puts columns of x into this order)
// In f32, with one rounding each, the products and then the sum above are bit for bit the type's values.
// needs: shared/weights/packed_values

const HALVES = 1u;
const ADDS = false;
const PAIRED = false;
const BYTE_UNIT = 1.0;

@group(0) @binding(0) var<storage, read> weight: array<vec4u>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;

struct WeightBlock {
  first: vec4u,
  second: vec4u,
  scale: f32,
}

fn load_block(row: u32, block: u32) -> WeightBlock {
  let at = row * (params.shape.octets / 4u) + block;
  return WeightBlock(weight[2u * at], weight[2u * at + 1u], half_of(scales[at / 2u], at));
}

fn weight_bytes(held: WeightBlock, octet: u32) -> vec2u {
  let words = select(held.second, held.first, octet < 2u);
  return select(words.zw, words.xy, octet % 2u == 0u);
}

fn half_affine(held: WeightBlock, half: u32) -> vec2f {
  return vec2f(held.scale, 0.0);
}
