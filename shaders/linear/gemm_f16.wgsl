// GEMM in halves, for GPUs that have shader-f16: several tokens, and weights in blocks of 32 columns. The
// weight's bytes are whole numbers, which halves hold exactly, and x is scaled (see split_planes.wgsl); what
// up to 32 columns add up to is a half as well, and everything beyond that is f32.
// needs: linear/fragments/plane_layout, linear/fragments/tiles_by_blocks, shared/halves, shared/weights/half_pairs, blocks = shared/weights/blocks_*

const WEIGHT_VECTORS = 4u;  // an octet each

fn weight_vector(held: WeightBlock, at: u32) -> vec4u {
  let bytes = weight_bytes(held, at);
  return vec4u(
    word_of(near_pair(bytes.x)),
    word_of(far_pair(bytes.x)),
    word_of(near_pair(bytes.y)),
    word_of(far_pair(bytes.y)),
  );
}

struct Row {
  a: vec4u,  // an octet of halves
  b: vec4u,
  c: vec4u,
  d: vec4u,
  affine: vec4f,  // (scale, minimum) of both halves of a block
}

fn row_at(k_split: u32, place: u32) -> Row {
  let first = k_split * WEIGHT_VECTORS * SIDE + place;
  return Row(
    weight_tiles[first],
    weight_tiles[first + SIDE],
    weight_tiles[first + 2u * SIDE],
    weight_tiles[first + 3u * SIDE],
    affine_tiles[k_split * SIDE + place],
  );
}

struct Token {
  a: vec4u,
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

fn with_octet(before: vec2h, row: vec4u, token: vec4u) -> vec2h {
  var sums = fma(halves_of(row.x), halves_of(token.x), before);
  sums = fma(halves_of(row.y), halves_of(token.y), sums);
  sums = fma(halves_of(row.z), halves_of(token.z), sums);
  return fma(halves_of(row.w), halves_of(token.w), sums);
}

fn block_dot(row: Row, token: Token) -> f32 {
  let first = with_octet(with_octet(vec2h(), row.a, token.a), row.b, token.b);
  var sum = 0.0;
  if (HALVES == 2u) {
    let second = with_octet(with_octet(vec2h(), row.c, token.c), row.d, token.d);
    sum = row.affine.x * sum_of_halves(first) + row.affine.z * sum_of_halves(second);
  } else {
    sum = row.affine.x * sum_of_halves(with_octet(with_octet(first, row.c, token.c), row.d, token.d));
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
