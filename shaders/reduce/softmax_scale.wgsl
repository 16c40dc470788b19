// For long rows: softmax, or its logarithm, of x: [outer, width, inner] from stats: [outer, inner],
// each row's largest element and sum. One invocation an element.
// needs: nothing

struct Params {
  count: u32,  // outer * width * inner
  width: u32,
  inner: u32,
}

override IS_LOG: u32;

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> stats: array<vec2f>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

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
  let outer = index / (params.width * params.inner);
  let row = stats[outer * params.inner + index % params.inner];
  let shifted = x[index] - row.x;
  out[index] = select(exp(shifted) / row.y, shifted - log(row.y), IS_LOG == 1u);
}
