// Softmax, or its logarithm, along the middle of x: [outer, width, inner]; one invocation a row.
// needs: nothing

struct Params {
  count: u32,  // outer * inner
  width: u32,
  inner: u32,
}

override IS_LOG: u32;

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let row = (group.y * groups.x + group.x) * WORKGROUP + lane;
  if (row >= params.count) {
    return;
  }
  let first = row / params.inner * params.width * params.inner + row % params.inner;
  let end = first + params.width * params.inner;
  var largest = x[first];
  for (var at = first; at < end; at += params.inner) {
    largest = max(largest, x[at]);
  }
  var sum = 0.0;
  for (var at = first; at < end; at += params.inner) {
    sum += exp(x[at] - largest);
  }
  if (IS_LOG == 1u) {
    let log_sum = log(sum);
    for (var at = first; at < end; at += params.inner) {
      out[at] = (x[at] - largest) - log_sum;
    }
  } else {
    let scale = 1.0 / sum;
    for (var at = first; at < end; at += params.inner) {
      out[at] = exp(x[at] - largest) * scale;
    }
  }
}
