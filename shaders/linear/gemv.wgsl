// GEMV for software adapters: one token, everything in registers. An invocation computes four pairs of rows
// over all of K, 32 columns at a time: x is loaded once for eight rows of weights, and no sum is shared, so
// that there is no barrier.
// needs: linear/fragments/norm, token = linear/fragments/token_*, linear/fragments/block, shared/octets, shared/weights/places, block = linear/fragments/block_*, weight = shared/weights/octets_*, epilogue = linear/fragments/epilogue_*, @pair_rows

const WORKGROUP = 8u;
const PAIRS = 4u;
const OCTETS = 4u;  // columns taken at a time, in eights

// Whether every octet looks for its own scale: groups are not a multiple of 32 columns.
override SCALE_PER_OCTET: bool = false;

// The dot product over a block.
fn block_dot(row: Row, at: array<EightColumns, OCTETS>, values: Block) -> f32 {
  let left = sixteen(row, at[0], at[1]);
  let right = sixteen(row, at[2], at[3]);
  var dots = vec4f(
    octet_dot(left.low, values.a),
    octet_dot(left.high, values.b),
    octet_dot(right.low, values.c),
    octet_dot(right.high, values.d),
  );
  if (UNIT != 1.0) {
    dots *= UNIT;
  }
  let first = affine(row, at[0]);
  if (!SCALE_PER_OCTET) {
    return first.x * dot(dots, vec4f(1.0)) + first.y * dot(values.sums, vec4f(1.0));
  }
  let second = affine(row, at[1]);
  let third = affine(row, at[2]);
  let fourth = affine(row, at[3]);
  return dot(vec4f(first.x, second.x, third.x, fourth.x), dots)
    + dot(vec4f(first.y, second.y, third.y, fourth.y), values.sums);
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  // Pairs past the end are clamped and not stored, which keeps control flow uniform.
  let pair = ((group.y * groups.x + group.x) * WORKGROUP + lane) * PAIRS;
  let a = pair_rows(pair);
  let b = pair_rows(pair + 1u);
  let c = pair_rows(pair + 2u);
  let d = pair_rows(pair + 3u);
  let first_rows = array(row_at(a.x), row_at(b.x), row_at(c.x), row_at(d.x));
  let second_rows = array(row_at(a.y), row_at(b.y), row_at(c.y), row_at(d.y));
  var firsts = vec4f();
  var seconds = vec4f();
  var squares = 0.0;
  if (SUMMED) {
    let all = all_squares(token_squares(lane % LOADERS, LOADERS));
    begin_token(all, pair < LOADERS * PAIRS);
  }
  let blocks = (params.shape.octets + OCTETS - 1u) / OCTETS;
  let last = params.shape.octets - 1u;
  for (var block = 0u; block < blocks; block++) {
    let values = x_block(block, lane);
    // Octets past the end are clamped: x is zero there.
    let octets = min(vec4u(OCTETS * block) + vec4u(0u, 1u, 2u, 3u), vec4u(last));
    let columns = array(
      columns_at(octets.x),
      columns_at(octets.y),
      columns_at(octets.z),
      columns_at(octets.w),
    );
    squares += values.squares;
    firsts += vec4f(
      block_dot(first_rows[0], columns, values),
      block_dot(first_rows[1], columns, values),
      block_dot(first_rows[2], columns, values),
      block_dot(first_rows[3], columns, values),
    );
    seconds += vec4f(
      block_dot(second_rows[0], columns, values),
      block_dot(second_rows[1], columns, values),
      block_dot(second_rows[2], columns, values),
      block_dot(second_rows[3], columns, values),
    );
  }
  let scale = norm_scale(all_squares(squares));
  for (var at = 0u; at < PAIRS; at++) {
    if (pair + at < params.pairs) {
      store_pair(0u, pair + at, scale * vec2f(firsts[at], seconds[at]));
    }
  }
}
