// out = (x - mean) * rstd * weight + bias, row by row, with rstd = rsqrt(variance + eps).
// x, out: [rows, width]; means, rstds: [rows]. Weight and bias are [channels], or any buffer, unread:
// a row has width / inner channels of `inner` neighbours each, and every `group_count` rows have all.
// One invocation a row: no barrier, which software adapters pay dearly for.
// needs: nothing

struct Params {
  rows: u32,
  width: u32,
  inner: u32,
  group_count: u32,
  eps: f32,
  has_weight: u32,
  has_bias: u32,
}

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
@group(0) @binding(4) var<storage, read_write> means: array<f32>;
@group(0) @binding(5) var<storage, read_write> rstds: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

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
  var sum = 0.0;
  for (var column = 0u; column < params.width; column++) {
    sum += x[first + column];
  }
  // The differences from a mean that is a little off, as long sums are, do not add up to zero: what
  // they come to mends both the mean and the variance.
  let near = sum / f32(params.width);
  var rest = 0.0;
  var squares = 0.0;
  for (var column = 0u; column < params.width; column++) {
    let difference = x[first + column] - near;
    rest += difference;
    squares += difference * difference;
  }
  let off = rest / f32(params.width);
  let mean = near + off;
  let rstd = inverseSqrt(squares / f32(params.width) - off * off + params.eps);
  means[row] = mean;
  rstds[row] = rstd;
  let first_channel = row % params.group_count * (params.width / params.inner);
  for (var column = 0u; column < params.width; column++) {
    let channel = first_channel + column / params.inner;
    var value = (x[first + column] - mean) * rstd;
    if (params.has_weight != 0u) {
      value *= weight[channel];
    }
    if (params.has_bias != 0u) {
      value += bias[channel];
    }
    out[first + column] = value;
  }
}
