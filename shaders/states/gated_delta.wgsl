// The gated delta rule, token after token: of each value head a matrix S [key_dim, value_dim] forgets
// (S *= e^g), is corrected where it would give another value for the key (S += k δᵀ with
// δ = β (v - Sᵀ k)), and asked (out = Sᵀ q · key_dim^-½). Keys and queries have the length 1.
// x: [tokens, q of the key heads, k of the key heads, v]; b, a: rows of gates_row, a's from a_column on;
// β = σ(b), g = decay · softplus(a + dt_bias). state: [value heads, key_dim, value_dim]; at position 0 it is
// empty. Columns of S are independent: an invocation has one of them, and no barrier is needed.
// needs: nothing

struct Params {
  count: u32,
  tokens: u32,
  value_heads: u32,
  key_heads: u32,
  key_dim: u32,
  value_dim: u32,
  tiled: u32,
  gates_row: u32,
  a_column: u32,
}

const WORKGROUP = 64u;
const MOST_KEYS = 256u;
const EPS = 1e-6;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read> a: array<f32>;
@group(0) @binding(3) var<storage, read> decay: array<f32>;
@group(0) @binding(4) var<storage, read> dt_bias: array<f32>;
@group(0) @binding(5) var<storage, read_write> state: array<f32>;
@group(0) @binding(6) var<uniform> start_pos: vec4i;
@group(0) @binding(7) var<storage, read_write> out: array<f32>;
@group(0) @binding(8) var<uniform> params: Params;

fn softplus(value: f32) -> f32 {
  return max(value, 0.0) + log(1.0 + exp(-abs(value)));
}

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
  let shared_by = params.value_heads / params.key_heads;
  let key_head = select(head / shared_by, head % params.key_heads, params.tiled != 0u);
  let keys = min(params.key_dim, MOST_KEYS);
  let first = head * params.key_dim * params.value_dim + index % params.value_dim;
  var column: array<f32, MOST_KEYS>;
  for (var i = 0u; i < keys; i++) {
    column[i] = select(state[first + i * params.value_dim], 0.0, start_pos.x == 0);
  }
  let all_keys = params.key_heads * params.key_dim;
  let row = 2u * all_keys + params.count;
  for (var token = 0u; token < params.tokens; token++) {
    let q = token * row + key_head * params.key_dim;
    let k = q + all_keys;
    let gate = token * params.gates_row + head;
    let beta = 1.0 / (1.0 + exp(-b[gate]));
    let kept = exp(decay[head] * softplus(a[gate + params.a_column] + dt_bias[head]));
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
    let step = beta * (value - kept * known * key_scale) * key_scale;
    var sum = 0.0;
    for (var i = 0u; i < keys; i++) {
      let now = kept * column[i] + x[k + i] * step;
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
