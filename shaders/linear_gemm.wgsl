// Several rows of x. An invocation computes a tile of 8 × 8 outputs in registers, eight columns of
// K at a time: eight rows of weights are dequantised once for eight rows of x.

const WORKGROUP = 16u;
const TILE = 8u;

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
  let tiles_across = (params.rows + TILE - 1u) / TILE;
  let row = (index % tiles_across) * TILE;
  let line = (index / tiles_across) * TILE;
  if (line >= params.count) {
    return;
  }
  let last_row = vec4u(params.rows - 1u);
  let left_rows = min(vec4u(row) + vec4u(0u, 1u, 2u, 3u), last_row);
  let right_rows = min(vec4u(row) + vec4u(4u, 5u, 6u, 7u), last_row);
  let last_line = vec4u(params.count - 1u);
  let upper = min(vec4u(line) + vec4u(0u, 1u, 2u, 3u), last_line);
  let lower = min(vec4u(line) + vec4u(4u, 5u, 6u, 7u), last_line);
  // Sums of the left and right half of each line of the tile.
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
  var tile = array(l0, r0, l1, r1, l2, r2, l3, r3, l4, r4, l5, r5, l6, r6, l7, r7);
  for (var down = 0u; down < min(TILE, params.count - line); down++) {
    for (var across = 0u; across < min(TILE, params.rows - row); across++) {
      store(line + down, row + across, tile[2u * down + across / 4u][across % 4u]);
    }
  }
}
