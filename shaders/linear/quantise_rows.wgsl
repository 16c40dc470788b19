// x rounded to 8 bits and back: (clamp(round(x / scale) + zero, -128, 127) - zero) * scale, with a scale and
// a zero point for each row. x, out: [rows, 4 quads]; scales: [rows]; zero_points: [rows], bytes in words or
// words. One invocation computes four columns.
// needs: nothing

struct Params {
  rows: u32,
  quads: u32,
}

override ZEROS_ARE_BYTES: bool;

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(1) var<storage, read> scales: array<f32>;
@group(0) @binding(2) var<storage, read> zero_points: array<i32>;
@group(0) @binding(3) var<storage, read_write> out: array<vec4f>;
@group(0) @binding(4) var<uniform> params: Params;

fn zero_point(row: u32) -> f32 {
  if (ZEROS_ARE_BYTES) {
    return f32(extractBits(zero_points[row / 4u], 8u * (row % 4u), 8u));
  }
  return f32(zero_points[row]);
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = (group.y * groups.x + group.x) * WORKGROUP + lane;
  if (index >= params.rows * params.quads) {
    return;
  }
  let row = index / params.quads;
  let scale = scales[row];
  let zero = zero_point(row);
  // Multiply by the reciprocal, as torchao does.
  let quantised = clamp(round(x[index] * (1.0 / scale)) + zero, vec4f(-128.0), vec4f(127.0));
  out[index] = (quantised - zero) * scale;
}
