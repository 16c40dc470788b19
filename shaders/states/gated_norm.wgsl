// out = out * rsqrt(mean(out²) + eps) * weight * silu(z), row by row and in place.
// out, z: [rows, width]; weight: [width]. One invocation a row.
// needs: nothing

struct Params {
  rows: u32,
  width: u32,
  eps: f32,
}

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> z: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

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
    let value = out[first + column];
    sum_of_squares += value * value;
  }
  let scale = inverseSqrt(sum_of_squares / f32(params.width) + params.eps);
  for (var column = 0u; column < params.width; column++) {
    let gate = z[first + column];
    out[first + column] *= scale * weight[column] * gate / (1.0 + exp(-gate));
  }
}
