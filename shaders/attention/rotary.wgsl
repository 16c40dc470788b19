// Rotary embedding of q and k: pairs of dims are rotated by the angle of their token's position. One
// invocation a pair. xq: [batches, tokens, q_heads, width]; xk: [batches, tokens, k_heads, width];
// tables: [rows, table_width], row = start_pos + token.
// Pairs lie side by side (pair_step 2, pair_gap 1) or half the rotated dims apart (1, rotated / 2).
// needs: nothing

struct Params {
  q_pairs: u32,
  k_pairs: u32,
  tokens: u32,
  q_heads: u32,
  k_heads: u32,
  width: u32,
  rotated: u32,  // dims of a head that are rotated; the rest passes through
  pair_step: u32,
  pair_gap: u32,
  table_width: u32,
  column_gap: u32,  // from the table's column of a pair's first dim to that of its second
}

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> xq: array<f32>;
@group(0) @binding(1) var<storage, read> xk: array<f32>;
@group(0) @binding(2) var<storage, read> cos_table: array<f32>;
@group(0) @binding(3) var<storage, read> sin_table: array<f32>;
@group(0) @binding(4) var<storage, read_write> xq_out: array<f32>;
@group(0) @binding(5) var<storage, read_write> xk_out: array<f32>;
@group(0) @binding(6) var<uniform> start_pos: vec4i;
@group(0) @binding(7) var<uniform> params: Params;

struct Pair {
  first: u32,  // element of the tensor
  second: u32,
  turns: bool,
  first_column: u32,  // element of the tables
  second_column: u32,
}

fn pair_at(index: u32, heads: u32) -> Pair {
  let pairs = params.width / 2u;
  let head_row = index / pairs;  // over batches, tokens and heads
  let pair = index % pairs;
  let head_at = head_row * params.width;
  let token = head_row / heads % params.tokens;
  let column = (u32(start_pos.x) + token) * params.table_width + pair;
  let first = head_at + pair * params.pair_step;
  let passed = head_at + pair * 2u;
  let turns = pair < params.rotated / 2u;
  return Pair(
    select(passed, first, turns),
    select(passed + 1u, first + params.pair_gap, turns),
    turns,
    column,
    column + params.column_gap,
  );
}

fn turned(values: vec2f, pair: Pair) -> vec2f {
  if (!pair.turns) {
    return values;
  }
  return vec2f(
    values.x * cos_table[pair.first_column] - values.y * sin_table[pair.first_column],
    values.y * cos_table[pair.second_column] + values.x * sin_table[pair.second_column],
  );
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = (group.y * groups.x + group.x) * WORKGROUP + lane;
  if (index < params.q_pairs) {
    let pair = pair_at(index, params.q_heads);
    let result = turned(vec2f(xq[pair.first], xq[pair.second]), pair);
    xq_out[pair.first] = result.x;
    xq_out[pair.second] = result.y;
  } else if (index < params.q_pairs + params.k_pairs) {
    let pair = pair_at(index - params.q_pairs, params.k_heads);
    let result = turned(vec2f(xk[pair.first], xk[pair.second]), pair);
    xk_out[pair.first] = result.x;
    xk_out[pair.second] = result.y;
  }
}
