// The gated delta rule for GPUs: four neighbours share a column of S and deal out its rows, so that it
// stays in their registers. They add up once a token: what the corrected column gives for a query is
// e^g Sᵀ q + δ kᵀ q.
// needs: lanes = shared/lanes_*, states/fragments/delta

const WORKGROUP = 64u;
const TEAM = 4u;
const MAX_ROWS = MAX_KEYS / TEAM;
override ROWS: u32 = 32u;  // of a column, an invocation's share

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  own: Invocation,
) {
  let place = ((group.y * groups.x + group.x) * WORKGROUP + own.lane) / TEAM;
  let index = min(place, params.count - 1u);  // those past the end work along, and store nothing
  let part = own.lane % TEAM;
  let head = index / params.value_dim;
  let first = column_start(index);
  var column: array<f32, MAX_ROWS>;
  var key: array<f32, MAX_ROWS>;
  for (var at = 0u; at < ROWS; at++) {
    let row = at * TEAM + part;
    let is_there = row < params.key_dim && start_pos.x != 0;
    column[at] = select(0.0, state[first + min(row, params.key_dim - 1u) * params.value_dim], is_there);
  }
  let all_keys = params.key_heads * params.key_dim;
  let line = 2u * all_keys + params.count;
  for (var token = 0u; token < params.tokens; token++) {
    let q = token * line + key_head_of(head) * params.key_dim;
    let k = q + all_keys;
    let gates = gates_of(token, head);
    let value = x[token * line + 2u * all_keys + index];
    var products = vec4f();  // Sᵀ k, Sᵀ q, k², q²
    var alike = 0.0;  // kᵀ q
    for (var at = 0u; at < ROWS; at++) {
      let row = at * TEAM + part;
      let is_there = row < params.key_dim;
      let near = min(row, params.key_dim - 1u);
      key[at] = select(0.0, x[k + near], is_there);
      let query = select(0.0, x[q + near], is_there);
      products += vec4f(column[at], column[at], key[at], query) * vec4f(key[at], query, key[at], query);
      alike += key[at] * query;
    }
    products = sums_of_four(own, products);
    alike = sum_of_four(own, alike);
    let key_scale = inverseSqrt(products.z + EPS);
    let query_scale = inverseSqrt(products.w + EPS) * inverseSqrt(f32(params.key_dim));
    let step = gates.x * (value - gates.y * products.x * key_scale) * key_scale;
    for (var at = 0u; at < ROWS; at++) {
      column[at] = gates.y * column[at] + key[at] * step;
    }
    if (part == 0u && place < params.count) {
      out[token * params.count + index] = (gates.y * products.y + step * alike) * query_scale;
    }
  }
  for (var at = 0u; at < ROWS; at++) {
    let row = at * TEAM + part;
    if (row < params.key_dim && place < params.count) {
      state[first + row * params.value_dim] = column[at];
    }
  }
}
