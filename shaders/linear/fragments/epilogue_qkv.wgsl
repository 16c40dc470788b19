// The epilogue of q, k and v: their weights lie one after the other, and a kernel computes all of them or
// some, from first_head on. The bias is that of all three; without one any buffer is bound, unread.
// qkv_store.wgsl rotates and stores the heads.
// needs: linear/fragments/params, attention/fragments/qkv_store

struct Params {
  shape: LinearParams,
  pairs: u32,  // pairs of rows
  eps: f32,  // of the norm of x, where it has one
  has_bias: u32,
  bias_stride: u32,  // from a token's bias to the next one's; 0: one for all
  first_head: u32,
  q_heads: u32,
  kv_heads: u32,
  width: u32,
  capacity: u32,
  rotated: u32,  // dims of a head that turn; the rest passes through
  pair_step: u32,
  pair_gap: u32,
  table_width: u32,
  column_gap: u32,  // from the table's column of a pair's first dim to that of its second
}

@group(0) @binding(0) var<storage, read> bias: array<f32>;

fn store_pair(token: u32, pair: u32, sums: vec2f) {
  var values = sums;
  if (params.has_bias != 0u) {
    let first = token * params.bias_stride + params.first_head * params.width;
    let rows = pair_rows(pair) + first;
    values += vec2f(bias[rows.x], bias[rows.y]);
  }
  turn_and_store(token, pair, values);
}
