// out = (x * rsqrt(mean(x²) + eps) * weight + residual) * factor, row by row, each of the three where
// there is one; else any buffer stands in its place, unread. factor: [1]; x, residual, out: [rows, width]; weight: [width]. One invocation a row: no barrier, which software adapters
// pay dearly for.
// needs: nothing

struct Params {
  rows: u32,
  width: u32,
  eps: f32,
  has_weight: u32,
  has_residual: u32,
  has_factor: u32,
}

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;
@group(0) @binding(4) var<storage, read> residual: array<f32>;
@group(0) @binding(5) var<storage, read> factor: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let row = (group.y * groups.x + group.x) * WORKGROUP + lane;
  if (row >= params.rows) {
    return;
  }
  let first = row * params.width;
  var sum_of_squares = 0.0;
  for (var column = 0u; column < params.width; column++) {
    let value = x[first + column];
    sum_of_squares += value * value;
  }
  let scale = inverseSqrt(sum_of_squares / f32(params.width) + params.eps);
  for (var column = 0u; column < params.width; column++) {
    var value = x[first + column] * scale;
    if (params.has_weight != 0u) {
      value *= weight[column];
    }
    if (params.has_residual != 0u) {
      value += residual[first + column];
    }
    if (params.has_factor != 0u) {
      value *= factor[0];
    }
    out[first + column] = value;
  }
}
