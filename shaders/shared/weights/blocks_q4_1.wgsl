// octets_q4_1.wgsl by whole blocks.
// needs: shared/weights/nibble_blocks

@group(0) @binding(0) var<storage, read> weight: array<vec4u>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;

struct WeightBlock {
  words: vec4u,
  affine: u32,
}

fn load_block(row: u32, block: u32) -> WeightBlock {
  let at = row * (params.octets / 4u) + block;
  return WeightBlock(weight[at], scales[at]);
}

fn weight_bytes(held: WeightBlock, octet: u32) -> vec2u {
  return nibble_bytes(held.words[octet]);
}

// nibble * scale + minimum, for what was taken from the nibbles.
fn block_affine(held: WeightBlock) -> vec2f {
  let affine = unpack2x16float(held.affine);
  return vec2f(affine.x, affine.y + 8.0 * affine.x);
}
