// hidden = activation(x gateᵀ) * (x upᵀ), each with its bias where there is one, for the experts of a token:
// the weights of other experts are not read. The weight is gate and up, one after the other, each
// [experts * rows, K].
// needs: linear/fragments/params, experts/fragments/dots, gate = linear/fragments/gate_*

struct Params {
  shape: LinearParams,
  count: u32,  // outputs: tokens * used * rows
  experts: u32,
  used: u32,  // experts of a token
  rows: u32,  // of an expert
  has_bias: u32,  // 0: any buffer is bound, unread
}

@group(0) @binding(0) var<storage, read> chosen: array<u32>;  // [tokens, used]
@group(0) @binding(1) var<storage, read> bias: array<f32>;  // [2, experts * rows]
@group(0) @binding(2) var<storage, read_write> hidden: array<f32>;  // [tokens, used, rows]

var<workgroup> sums: array<vec2f, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = ((group.y * groups.x + group.x) * WORKGROUP + lane) / SHARERS;
  let known = min(index, params.count - 1u);
  let slot = known / params.rows;
  let row = min(chosen[slot], params.experts - 1u) * params.rows + known % params.rows;
  let token = slot / params.used;
  sums[lane] = vec2f(
    share_of_dot(row, token, lane),
    share_of_dot(params.experts * params.rows + row, token, lane),
  );
  workgroupBarrier();
  if (lane % SHARERS != 0u || index >= params.count) {
    return;
  }
  var both = vec2f();
  for (var at = 0u; at < SHARERS; at++) {
    both += sums[lane + at];
  }
  if (params.has_bias != 0u) {
    both += vec2f(bias[row], bias[params.experts * params.rows + row]);
  }
  hidden[index] = gated(both.x, both.y);
}
