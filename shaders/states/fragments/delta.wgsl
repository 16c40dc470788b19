// The gated delta rule: of each value head a matrix S [key_dim, value_dim] forgets, token after token
// (S *= e^g), is corrected where it would give another value for the key (S += k δᵀ with
// δ = β (v - Sᵀ k)), and asked (out = Sᵀ q · key_dim^-½). Keys and queries have the length 1.
// x: [tokens, q of the key heads, k of the key heads, v]; b, a: rows of gates_row, a's from a_column on;
// β = σ(b), g = decay · softplus(a + dt_bias). state: [value heads, key_dim, value_dim]; at position 0 it is
// empty. Columns of S are independent.
// needs: nothing

struct Params {
  count: u32,  // columns of all heads
  tokens: u32,
  value_heads: u32,
  key_heads: u32,
  key_dim: u32,
  value_dim: u32,
  tiled: u32,
  gates_row: u32,
  a_column: u32,
}

const MAX_KEYS = 256u;
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

// β and e^g.
fn gates_of(token: u32, head: u32) -> vec2f {
  let gate = token * params.gates_row + head;
  let forgetting = decay[head] * softplus(a[gate + params.a_column] + dt_bias[head]);
  return vec2f(1.0 / (1.0 + exp(-b[gate])), exp(forgetting));
}

fn key_head_of(head: u32) -> u32 {
  let shared_by = params.value_heads / params.key_heads;
  return select(head / shared_by, head % params.key_heads, params.tiled != 0u);
}

// Where the first number of a column lies; the next are value_dim apart.
fn column_start(index: u32) -> u32 {
  return index / params.value_dim * params.key_dim * params.value_dim + index % params.value_dim;
}
