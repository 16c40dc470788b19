// Rotary embedding of x: neighbouring dims are rotated by the angle of their token. One invocation a pair.
// x: [batches, tokens, width]; freqs: [rows, width], a cosine and a sine for each pair.
// needs: nothing

struct Params {
  pairs: u32,
  batch_pairs: u32,  // pairs of one batch: tokens * width / 2
}

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> x: array<vec2f>;
@group(0) @binding(1) var<storage, read> freqs: array<vec2f>;
@group(0) @binding(2) var<storage, read_write> out: array<vec2f>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = (group.y * groups.x + group.x) * WORKGROUP + lane;
  if (index >= params.pairs) {
    return;
  }
  let pair = x[index];
  let angle = freqs[index % params.batch_pairs];  // (cosine, sine)
  out[index] = vec2f(
    pair.x * angle.x - pair.y * angle.y,
    pair.x * angle.y + pair.y * angle.x,
  );
}
