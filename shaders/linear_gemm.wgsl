// Several lines of x. An invocation computes a tile of 8 lines × 4 pairs of rows in registers, eight
// columns of K at a time: eight rows of weights are dequantised once for eight lines of x.

const WORKGROUP = 16u;
const TILE_LINES = 8u;
const TILE_PAIRS = 4u;

// Eight columns of four rows of weights: a column of each matrix belongs to one row.
struct Rows {
  low: mat4x4f,
  high: mat4x4f,
}

fn four_rows(rows: vec4u, octet: u32) -> Rows {
  let a = dequantised(rows.x, octet);
  let b = dequantised(rows.y, octet);
  let c = dequantised(rows.z, octet);
  let d = dequantised(rows.w, octet);
  return Rows(mat4x4f(a[0], b[0], c[0], d[0]), mat4x4f(a[1], b[1], c[1], d[1]));
}

// Four dot products over eight columns.
fn dots(values: mat2x4f, rows: Rows) -> vec4f {
  return values[0] * rows.low + values[1] * rows.high;
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = (group.y * groups.x + group.x) * WORKGROUP + lane;
  let tiles_across = (params.pairs + TILE_PAIRS - 1u) / TILE_PAIRS;
  let pair = (index % tiles_across) * TILE_PAIRS;
  let line = (index / tiles_across) * TILE_LINES;
  if (line >= params.count) {
    return;
  }
  let a = pair_rows(pair);
  let b = pair_rows(pair + 1u);
  let c = pair_rows(pair + 2u);
  let d = pair_rows(pair + 3u);
  let left_rows = vec4u(a.x, b.x, c.x, d.x);
  let right_rows = vec4u(a.y, b.y, c.y, d.y);
  let last_line = vec4u(params.count - 1u);
  let upper = min(vec4u(line) + vec4u(0u, 1u, 2u, 3u), last_line);
  let lower = min(vec4u(line) + vec4u(4u, 5u, 6u, 7u), last_line);
  // Sums of each line of the tile: the pairs' first rows, and their second ones.
  var l0 = vec4f(); var l1 = vec4f(); var l2 = vec4f(); var l3 = vec4f();
  var l4 = vec4f(); var l5 = vec4f(); var l6 = vec4f(); var l7 = vec4f();
  var r0 = vec4f(); var r1 = vec4f(); var r2 = vec4f(); var r3 = vec4f();
  var r4 = vec4f(); var r5 = vec4f(); var r6 = vec4f(); var r7 = vec4f();
  for (var octet = 0u; octet < params.octets; octet++) {
    let left = four_rows(left_rows, octet);
    let right = four_rows(right_rows, octet);
    var values = x_octet(upper.x, octet);
    l0 += dots(values, left);
    r0 += dots(values, right);
    values = x_octet(upper.y, octet);
    l1 += dots(values, left);
    r1 += dots(values, right);
    values = x_octet(upper.z, octet);
    l2 += dots(values, left);
    r2 += dots(values, right);
    values = x_octet(upper.w, octet);
    l3 += dots(values, left);
    r3 += dots(values, right);
    values = x_octet(lower.x, octet);
    l4 += dots(values, left);
    r4 += dots(values, right);
    values = x_octet(lower.y, octet);
    l5 += dots(values, left);
    r5 += dots(values, right);
    values = x_octet(lower.z, octet);
    l6 += dots(values, left);
    r6 += dots(values, right);
    values = x_octet(lower.w, octet);
    l7 += dots(values, left);
    r7 += dots(values, right);
  }
  var firsts = array(l0, l1, l2, l3, l4, l5, l6, l7);
  var seconds = array(r0, r1, r2, r3, r4, r5, r6, r7);
  for (var down = 0u; down < min(TILE_LINES, params.count - line); down++) {
    for (var across = 0u; across < min(TILE_PAIRS, params.pairs - pair); across++) {
      store_pair(line + down, pair + across, vec2f(firsts[down][across], seconds[down][across]));
    }
  }
}
