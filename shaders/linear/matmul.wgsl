// out = alpha * a b + beta * bias for each batch, in tiles of 4 × 4 outputs.
// a: [batches, rows, depth]; b: [batches, depth, columns], or any strides over one matrix;
// out: [batches, rows, columns]; bias: any strides over [rows, columns].
// needs: nothing

struct Params {
  batches: u32,
  rows: u32,
  columns: u32,
  depth: u32,
  b_depth_stride: u32,
  b_column_stride: u32,
  bias_row_stride: u32,
  bias_column_stride: u32,
  has_bias: u32,
  alpha: f32,
  beta: f32,
}

const WORKGROUP = 32u;
const TILE = 4u;

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;  // any buffer without has_bias, unread
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;

fn store(batch: u32, row: u32, column: u32, sum: f32) {
  var value = params.alpha * sum;
  if (params.has_bias != 0u) {
    let at = row * params.bias_row_stride + column * params.bias_column_stride;
    value += params.beta * bias[at];
  }
  out[(batch * params.rows + row) * params.columns + column] = value;
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = (group.y * groups.x + group.x) * WORKGROUP + lane;
  let tiles_across = (params.columns + TILE - 1u) / TILE;
  let tiles_down = (params.rows + TILE - 1u) / TILE;
  let column = (index % tiles_across) * TILE;
  let row = (index / tiles_across % tiles_down) * TILE;
  let batch = index / (tiles_across * tiles_down);
  if (batch >= params.batches) {
    return;
  }
  let steps = vec4u(0u, 1u, 2u, 3u);
  let rows = min(vec4u(row) + steps, vec4u(params.rows - 1u));
  let columns = min(vec4u(column) + steps, vec4u(params.columns - 1u));
  var a_at = (vec4u(batch * params.rows) + rows) * params.depth;
  var b_at = vec4u(batch * params.depth * params.columns) + columns * params.b_column_stride;
  var s0 = vec4f();
  var s1 = vec4f();
  var s2 = vec4f();
  var s3 = vec4f();
  for (var k = 0u; k < params.depth; k++) {
    let values = vec4f(b[b_at.x], b[b_at.y], b[b_at.z], b[b_at.w]);
    s0 += a[a_at.x] * values;
    s1 += a[a_at.y] * values;
    s2 += a[a_at.z] * values;
    s3 += a[a_at.w] * values;
    a_at += vec4u(1u);
    b_at += vec4u(params.b_depth_stride);
  }
  var tile = array(s0, s1, s2, s3);
  for (var down = 0u; down < min(TILE, params.rows - row); down++) {
    for (var across = 0u; across < min(TILE, params.columns - column); across++) {
      store(batch, row + down, column + across, tile[down][across]);
    }
  }
}
