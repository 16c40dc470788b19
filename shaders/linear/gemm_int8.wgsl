// GEMM by int8 planes: several tokens, and weights in blocks of 32 columns, multiplied as integers. Both
// planes of x (see split_planes.wgsl) meet the weight's bytes, four columns at once, in dot4I8Packed.
// needs: linear/fragments/plane_layout, linear/fragments/tiles_by_blocks, blocks = shared/weights/blocks_*

const WEIGHT_VECTORS = 2u;

fn weight_vector(held: WeightBlock, at: u32) -> vec4u {
  return vec4u(weight_bytes(held, 2u * at), weight_bytes(held, 2u * at + 1u));
}

struct Row {
  first: vec4u,  // bytes of the first half of a block
  second: vec4u,
  affine: vec4f,  // (scale, minimum) of both halves
}

fn row_at(k_split: u32, place: u32) -> Row {
  let first = k_split * WEIGHT_VECTORS * SIDE + place;
  return Row(weight_tiles[first], weight_tiles[first + SIDE], affine_tiles[k_split * SIDE + place]);
}

struct Token {
  a: vec4u,  // two planes of an octet
  b: vec4u,
  c: vec4u,
  d: vec4u,
  facts: vec4f,
}

fn token_at(k_split: u32, place: u32) -> Token {
  let first = k_split * VECTORS * SIDE + place;
  return Token(
    x_tiles[first],
    x_tiles[first + SIDE],
    x_tiles[first + 2u * SIDE],
    x_tiles[first + 3u * SIDE],
    // BYTE_UNIT goes into the scale of x: a scale of the weight may be too small for it.
    bitcast<vec4f>(x_tiles[first + FACTS * SIDE]) * vec4f(BYTE_UNIT, 1.0, 1.0, 1.0),
  );
}

// The integer dot product of 16 columns.
fn whole(bytes: vec4u, even: vec4u, odd: vec4u) -> i32 {
  let high = dot4I8Packed(bytes.x, even.x) + dot4I8Packed(bytes.y, even.y)
    + dot4I8Packed(bytes.z, odd.x) + dot4I8Packed(bytes.w, odd.y);
  let low = dot4I8Packed(bytes.x, even.z) + dot4I8Packed(bytes.y, even.w)
    + dot4I8Packed(bytes.z, odd.z) + dot4I8Packed(bytes.w, odd.w);
  return 256 * high + low;
}

fn block_dot(row: Row, token: Token) -> f32 {
  let first = whole(row.first, token.a, token.b);
  let second = whole(row.second, token.c, token.d);
  var sum = row.affine.x * f32(first + second);
  if (HALVES == 2u) {
    sum = row.affine.x * f32(first) + row.affine.z * f32(second);
  }
  sum *= token.facts.x;
  if (ADDS) {
    sum += row.affine.y * token.facts.y + row.affine.w * token.facts.z;
  }
  return sum;
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  multiply(group, groups, lane);
}
