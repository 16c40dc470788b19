// octets_q4gsw.wgsl by whole blocks: rows and groups are multiples of 32 columns.
// needs: shared/weights/packed_values, shared/weights/nibble_blocks, @Columns, @scale_place

@group(0) @binding(0) var<storage, read> weight: array<vec4u>;
@group(0) @binding(1) var<storage, read> scales: array<f32>;

struct WeightBlock {
  words: vec4u,
  scale: f32,
}

fn load_block(row: u32, block: u32) -> WeightBlock {
  let group = 4u * block / params.octets_per_group;
  return WeightBlock(
    weight[row * (params.octets / 4u) + block],
    scales[scale_place(row, group)],
  );
}

fn block_dot(held: WeightBlock, columns: Columns) -> f32 {
  return held.scale * nibbles_dot(held.words, columns);
}

fn word_values(word: u32) -> mat2x4f {
  return centred_nibbles(word);
}
