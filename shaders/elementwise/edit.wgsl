// out = x + gain * x + bias in the rows of a span of positions, x in others. x, out: [tokens, width]; gain, bias:
// [rows, width], of which the first row is for the span's first position; a single row is for all of them.
// needs: nothing

struct Params {
  count: u32,
  width: u32,
  rows: u32,
}

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> gain: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read> span: array<i32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;
@group(0) @binding(5) var<uniform> start_pos: vec4i;
@group(0) @binding(6) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = (group.y * groups.x + group.x) * WORKGROUP + lane;
  if (index >= params.count) {
    return;
  }
  let position = start_pos.x + i32(index / params.width);
  let value = x[index];
  if (position < span[0] || position >= span[1]) {
    out[index] = value;
    return;
  }
  let row = min(u32(position - span[0]), params.rows - 1u);
  let place = row * params.width + index % params.width;
  out[index] = value + gain[place] * value + bias[place];
}
