// The selective scan of Mamba-2: of each head a matrix H [state_dim, head_dim] forgets, token after token
// (H *= e^{a δ}), takes in what is new (H += B (δ v)ᵀ), and is asked (Hᵀ C). What comes out is
// (Hᵀ C + skip · v) · silu(z), with the token's step δ = softplus(dt + dt_bias).
// x: [tokens, v of all heads, B of the groups, C of the groups]; neighbouring heads share a group.
// projected: [tokens, row], which begins with z and ends with dt; rates: a, dt_bias and skip of the heads.
// state: [heads, state_dim, head_dim]; at position 0 it is empty. Columns of H are independent.
// needs: nothing

struct Params {
  count: u32,  // columns of all heads
  tokens: u32,
  heads: u32,
  group_count: u32,
  head_dim: u32,
  state_dim: u32,
  row: u32,
}

const MAX_STATE = 256u;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> projected: array<f32>;
@group(0) @binding(2) var<storage, read> rates: array<f32>;
@group(0) @binding(3) var<storage, read_write> state: array<f32>;
@group(0) @binding(4) var<uniform> start_pos: vec4i;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

// δ.
fn step_of(token: u32, head: u32) -> f32 {
  let value = projected[(token + 1u) * params.row - params.heads + head] + rates[params.heads + head];
  return max(value, 0.0) + log(1.0 + exp(-abs(value)));
}

fn gate_of(token: u32, index: u32) -> f32 {
  let value = projected[token * params.row + index];
  return value / (1.0 + exp(-value));
}

// How long a row of x is.
fn line_length() -> u32 {
  return params.count + 2u * params.group_count * params.state_dim;
}

// Where, in a row of x, B of a head's group lies; C is all groups' B further on.
fn group_start(head: u32) -> u32 {
  return params.count + head / (params.heads / params.group_count) * params.state_dim;
}

// Where the first number of a column lies; the next are head_dim apart.
fn column_start(index: u32) -> u32 {
  return index / params.head_dim * params.state_dim * params.head_dim + index % params.head_dim;
}
