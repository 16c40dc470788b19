// The destinations of a token's q, k and v: pairs of dims of q and k are rotated by the angle of their
// position; q goes to q_out [tokens, q_heads, width], k and v into caches [capacity, kv_heads, width] at
// start_pos. The caches are rings: positions beyond their rows wrap around.
// Rows of q, k and v are numbered one after the other; those of this kernel begin with first_head. Pairs lie
// side by side (pair_step 2, pair_gap 1) or half the rotated dims apart (1, rotated / 2).
// needs: store = attention/fragments/store_*

@group(0) @binding(0) var<storage, read_write> q_out: array<f32>;
@group(0) @binding(1) var<storage, read> cos_table: array<f32>;  // [rows, table_width]
@group(0) @binding(2) var<storage, read> sin_table: array<f32>;
@group(0) @binding(3) var<uniform> start_pos: vec4i;
@group(0) @binding(4) var<uniform> table_start: vec4i;  // the tables' row of the first token

fn turns(head: u32, pair_of_head: u32) -> bool {
  return head < params.q_heads + params.kv_heads && pair_of_head < params.rotated / 2u;
}

fn pair_rows(pair: u32) -> vec2u {
  let pairs = params.width / 2u;
  let known = min(pair, params.pairs - 1u);
  let head = known / pairs;
  let at = known % pairs;
  let turning = at * params.pair_step;
  let dims = select(vec2u(2u * at, 2u * at + 1u), vec2u(turning, turning + params.pair_gap),
    turns(params.first_head + head, at));
  return head * params.width + dims;
}

fn turn_and_store(token: u32, pair: u32, straight: vec2f) {
  let rows = pair_rows(pair) + params.first_head * params.width;
  let head = rows.x / params.width;
  var values = straight;
  let at = pair % (params.width / 2u);
  if (turns(head, at)) {
    let column = (u32(table_start.x) + token) * params.table_width + at;
    let second = column + params.column_gap;
    values = vec2f(
      values.x * cos_table[column] - values.y * sin_table[column],
      values.y * cos_table[second] + values.x * sin_table[second],
    );
  }
  let q_rows = params.q_heads * params.width;
  let kv_rows = params.kv_heads * params.width;
  if (head < params.q_heads) {
    q_out[token * q_rows + rows.x] = values.x;
    q_out[token * q_rows + rows.y] = values.y;
    return;
  }
  let cache_row = (u32(start_pos.x) + token) % params.capacity;
  if (head < params.q_heads + params.kv_heads) {
    store_keys(cache_row * kv_rows + rows - q_rows, values);
  } else {
    store_values(cache_row * kv_rows + rows - q_rows - kv_rows, values);
  }
}
