// out = Σ share * (hidden downᵀ + bias) over the experts of a token, plus a residual where there is one.
// down: [experts * rows, K].
// needs: linear/fragments/params, experts/fragments/dots

struct Params {
  shape: LinearParams,
  count: u32,  // outputs: tokens * rows
  experts: u32,
  used: u32,  // experts of a token
  rows: u32,  // of an expert
  has_bias: u32,  // 0: any buffer is bound, unread
  has_residual: u32,  // likewise
}

@group(0) @binding(0) var<storage, read> chosen: array<u32>;  // [tokens, used]
@group(0) @binding(1) var<storage, read> shares: array<f32>;  // [tokens, used]
@group(0) @binding(2) var<storage, read> bias: array<f32>;  // [experts * rows]
@group(0) @binding(3) var<storage, read> residual: array<f32>;  // [tokens, rows]
@group(0) @binding(4) var<storage, read_write> out: array<f32>;  // [tokens, rows]

var<workgroup> sums: array<f32, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = ((group.y * groups.x + group.x) * WORKGROUP + lane) / SHARERS;
  let known = min(index, params.count - 1u);
  let first = known / params.rows * params.used;
  var sum = 0.0;
  for (var slot = first; slot < first + params.used; slot++) {
    let row = min(chosen[slot], params.experts - 1u) * params.rows + known % params.rows;
    let added = select(0.0, bias[row], params.has_bias != 0u && lane % SHARERS == 0u);
    sum += shares[slot] * (share_of_dot(row, slot, lane) + added);
  }
  sums[lane] = sum;
  workgroupBarrier();
  if (lane % SHARERS != 0u || index >= params.count) {
    return;
  }
  sum = select(0.0, residual[index], params.has_residual != 0u);
  for (var at = 0u; at < SHARERS; at++) {
    sum += sums[lane + at];
  }
  out[index] = sum;
}
