// GEMM by int8 planes: several tokens, and weights in blocks of 32 columns, multiplied as integers. Both
// planes of x (see split_planes.wgsl) meet the weight's bytes, four columns at once, in dot4I8Packed.
// needs: linear/fragments/plane_layout, linear/fragments/tiles_by_blocks, linear/fragments/rows_by_planes, linear/fragments/two_planes, blocks = shared/weights/blocks_*

const WEIGHT_VECTORS = 2u;

fn weight_vector(held: WeightBlock, at: u32) -> vec4u {
  return vec4u(weight_bytes(held, 2u * at), weight_bytes(held, 2u * at + 1u));
}

fn row_at(k_split: u32, place: u32) -> Row {
  let first = k_split * WEIGHT_VECTORS * SIDE + place;
  return Row(weight_tiles[first], weight_tiles[first + SIDE], affine_tiles[k_split * SIDE + place]);
}

fn token_at(k_split: u32, place: u32) -> Token {
  return token_of(k_split * VECTORS * SIDE + place, SIDE);
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  multiply(group, groups, lane);
}
