// One line of x. A workgroup computes one or two pairs of rows: its invocations share out the
// columns, sixteen at a time, so that neighbours load neighbouring words, and add up in the end.
// needs: shared/subgroups, linear/fragments/norm, weight = shared/weights/octets_*, finish = linear/fragments/finish_*, @pair_rows

override WORKGROUP: u32 = 128u;
override TWO_PAIRS: bool = true;
// Groups that are no multiple of 32 columns: every eight columns look for their own scale.
override SCALE_PER_OCTET: bool = false;
const OCTETS = 2u;  // of columns that an invocation takes at a time
const SMALLEST_SUBGROUP = 4u;

// Of each subgroup: the rows' sums, and the squares.
var<workgroup> subgroup_sums: array<vec4f, WORKGROUP / SMALLEST_SUBGROUP>;
var<workgroup> subgroup_squares: array<f32, WORKGROUP / SMALLEST_SUBGROUP>;

fn octet_dot(weights: mat2x4f, values: mat2x4f) -> f32 {
  return dot(weights[0], values[0]) + dot(weights[1], values[1]);
}

// Sum of weight * x over two octets. One past the end is clamped: x is zero there.
fn pair_dot(row: u32, pair: u32, low: Octet, high: Octet) -> f32 {
  let weights = sixteen(row, pair);
  let dots = vec2f(octet_dot(weights.low, low.values), octet_dot(weights.high, high.values));
  let first = affine(row, 2u * pair);
  if (!SCALE_PER_OCTET) {
    return first.x * (dots.x + dots.y) + first.y * (low.sum + high.sum);
  }
  let second = affine(row, min(2u * pair + 1u, params.octets - 1u));
  return first.x * dots.x + first.y * low.sum + second.x * dots.y + second.y * high.sum;
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
  @builtin(subgroup_invocation_id) subgroup_lane: u32,
  @builtin(subgroup_size) subgroup_size: u32,
) {
  let pairs = select(1u, 2u, TWO_PAIRS);
  let pair = (group.y * groups.x + group.x) * pairs;
  let rows = vec4u(pair_rows(pair), pair_rows(pair + 1u));
  var sums = vec4f();
  var squares = 0.0;
  for (var at = lane; OCTETS * at < params.octets; at += WORKGROUP) {
    let low = normed_octet(OCTETS * at);
    let high = normed_octet(OCTETS * at + 1u);
    squares += low.squares + high.squares;
    sums.x += pair_dot(rows.x, at, low, high);
    sums.y += pair_dot(rows.y, at, low, high);
    if (TWO_PAIRS) {
      sums.z += pair_dot(rows.z, at, low, high);
      sums.w += pair_dot(rows.w, at, low, high);
    }
  }
  sums = subgroupAdd(sums);
  squares = subgroupAdd(squares);
  if (subgroup_lane == 0u) {
    subgroup_sums[lane / subgroup_size] = sums;
    subgroup_squares[lane / subgroup_size] = squares;
  }
  workgroupBarrier();
  if (lane >= pairs || pair + lane >= params.pairs) {
    return;
  }
  sums = vec4f();
  squares = 0.0;
  for (var at = 0u; at * subgroup_size < WORKGROUP; at++) {
    sums += subgroup_sums[at];
    squares += subgroup_squares[at];
  }
  let own = select(sums.zw, sums.xy, lane == 0u);
  store_pair(0u, pair + lane, norm_scale(squares) * own);
}
