// octets_q4_1.wgsl by whole blocks.
// needs: shared/weights/packed_values, shared/weights/nibble_blocks, @Columns

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

fn sum_of_columns(columns: Columns) -> f32 {
  let quads = columns.low * vec4f(1.0) + columns.high * vec4f(1.0);
  return dot(quads, vec4f(1.0));
}

fn block_dot(held: WeightBlock, columns: Columns) -> f32 {
  let affine = unpack2x16float(held.affine);
  return affine.x * nibbles_dot(held.words, columns) + affine.y * sum_of_columns(columns);
}

fn word_values(word: u32) -> mat2x4f {
  return unsigned_nibbles(word);
}
