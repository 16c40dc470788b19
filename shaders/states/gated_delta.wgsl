// The gated delta rule with a column of S to an invocation: no barrier is needed.
// needs: states/fragments/delta

const WORKGROUP = 64u;

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
  let head = index / params.value_dim;
  let keys = min(params.key_dim, MAX_KEYS);
  let first = column_start(index);
  var column: array<f32, MAX_KEYS>;
  for (var i = 0u; i < keys; i++) {
    column[i] = select(state[first + i * params.value_dim], 0.0, start_pos.x == 0);
  }
  let all_keys = params.key_heads * params.key_dim;
  let row = 2u * all_keys + params.count;
  for (var token = 0u; token < params.tokens; token++) {
    let q = token * row + key_head_of(head) * params.key_dim;
    let k = q + all_keys;
    let gates = gates_of(token, head);
    var key_square = 0.0;
    var query_square = 0.0;
    var known = 0.0;
    for (var i = 0u; i < keys; i++) {
      let key = x[k + i];
      let query = x[q + i];
      key_square += key * key;
      query_square += query * query;
      known += column[i] * key;
    }
    let key_scale = inverseSqrt(key_square + EPS);
    let value = x[token * row + 2u * all_keys + index];
    let step = gates.x * (value - gates.y * known * key_scale) * key_scale;
    var sum = 0.0;
    for (var i = 0u; i < keys; i++) {
      let now = gates.y * column[i] + x[k + i] * step;
      column[i] = now;
      sum += now * x[q + i];
    }
    let query_scale = inverseSqrt(query_square + EPS) * inverseSqrt(f32(params.key_dim));
    out[token * params.count + index] = sum * query_scale;
  }
  for (var i = 0u; i < keys; i++) {
    state[first + i * params.value_dim] = column[i];
  }
}
