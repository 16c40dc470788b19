// GEMV for GPUs with cheap workgroup memory: one token, for weights that are not in blocks of 32 columns. A
// workgroup computes two pairs of rows: its invocations share out the columns, sixteen at a time, so that
// neighbours load neighbouring words, and add up their sums in the end.
// needs: lanes = shared/lanes_*, linear/fragments/norm, token = linear/fragments/token_*, shared/octets, shared/weights/places, weight = shared/weights/octets_*, epilogue = linear/fragments/epilogue_*, @pair_rows

const WORKGROUP = 128u;
const PAIRS = 2u;
// Whether every octet looks for its own scale: groups are not a multiple of 32 columns.
override SCALE_PER_OCTET: bool = false;
const OCTETS = 2u;  // columns that an invocation takes at a time, in eights

// The dot product over two octets. An octet past the end is clamped: x is zero there.
fn pair_dot(row: Row, at: array<EightColumns, 2>, low: Octet, high: Octet) -> f32 {
  let weights = sixteen(row, at[0], at[1]);
  let dots = UNIT * vec2f(octet_dot(weights.low, low.values), octet_dot(weights.high, high.values));
  let first = affine(row, at[0]);
  if (!SCALE_PER_OCTET) {
    return first.x * (dots.x + dots.y) + first.y * (low.sum + high.sum);
  }
  let second = affine(row, at[1]);
  return first.x * dots.x + first.y * low.sum + second.x * dots.y + second.y * high.sum;
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  own: Invocation,
) {
  let pair = (group.y * groups.x + group.x) * PAIRS;
  let upper = pair_rows(pair);
  let lower = pair_rows(pair + 1u);
  let a = row_at(upper.x);
  let b = row_at(upper.y);
  let c = row_at(lower.x);
  let d = row_at(lower.y);
  var sums = vec4f();
  var squares = 0.0;
  if (SUMMED) {
    begin_token(sum_of_all(own, token_squares(own.lane, WORKGROUP)), pair == 0u);
  }
  for (var at = own.lane; OCTETS * at < params.shape.octets; at += WORKGROUP) {
    let low = normed_octet(OCTETS * at);
    let high = normed_octet(OCTETS * at + 1u);
    squares += low.squares + high.squares;
    let last = params.shape.octets - 1u;
    let columns = array(columns_at(OCTETS * at), columns_at(min(OCTETS * at + 1u, last)));
    sums.x += pair_dot(a, columns, low, high);
    sums.y += pair_dot(b, columns, low, high);
    sums.z += pair_dot(c, columns, low, high);
    sums.w += pair_dot(d, columns, low, high);
  }
  sums = sums_of_all(own, sums);
  if (NORMED) {
    squares = sum_of_all(own, squares);
  }
  if (own.lane >= PAIRS || pair + own.lane >= params.pairs) {
    return;
  }
  let of_pair = select(sums.zw, sums.xy, own.lane == 0u);
  store_pair(0u, pair + own.lane, norm_scale(squares) * of_pair);
}
