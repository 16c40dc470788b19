// q, k and v as a linear has left them, one row a token. Heads of q and k are normalised, if they have a
// norm, and rotated; heads of v may be normalised too, without a weight; then all are stored by
// qkv_store.wgsl. qkv: [tokens, q_heads + 2 * kv_heads, width]; q_norm, k_norm: [width], or as long as all
// heads of q, or of k, where these are normalised together; any buffer without norms.
// needs: attention/fragments/qkv_store

struct Params {
  tokens: u32,
  pairs: u32,  // pairs of a token's values
  first_head: u32,  // always 0: all heads are here
  q_heads: u32,
  kv_heads: u32,
  width: u32,
  capacity: u32,
  rotated: u32,  // dims of a head that are rotated; the rest passes through
  pair_step: u32,
  pair_gap: u32,
  table_width: u32,
  column_gap: u32,  // from the table's column of a pair's first dim to that of its second
  has_norms: u32,
  normed_by_row: u32,  // all heads of q together, and all of k
  values_normed: u32,
  q_eps: f32,
  k_eps: f32,
  v_eps: f32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> qkv: array<f32>;
@group(0) @binding(2) var<storage, read> q_norm: array<f32>;
@group(0) @binding(3) var<storage, read> k_norm: array<f32>;

fn heads() -> u32 {
  return params.q_heads + 2u * params.kv_heads;
}

fn is_value(head: u32) -> bool {
  return head >= params.q_heads + params.kv_heads;
}

fn is_normed(head: u32) -> bool {
  return select(params.has_norms, params.values_normed, is_value(head)) != 0u;
}

// The range of a token's values that is normalised together with a head: first, end.
fn normed_range(head: u32) -> vec2u {
  let q_end = params.q_heads * params.width;
  let own = head * params.width;
  if (params.normed_by_row == 0u) {
    return vec2u(own, own + params.width);
  }
  return select(vec2u(q_end, q_end + params.kv_heads * params.width), vec2u(0u, q_end), own < q_end);
}

fn norm_scale(head: u32, squares: f32) -> f32 {
  var eps = select(params.k_eps, params.q_eps, head < params.q_heads);
  eps = select(eps, params.v_eps, is_value(head));
  let range = normed_range(head);
  return inverseSqrt(squares / f32(range.y - range.x) + eps);
}

fn norm_weight(head: u32, row: u32) -> f32 {
  if (is_value(head)) {
    return 1.0;
  }
  let place = row - normed_range(head).x;
  if (head < params.q_heads) {
    return q_norm[place];
  }
  return k_norm[place];
}

// Normalises a pair of a head by `scale`, where it has a norm, rotates and stores it.
fn store_head_pair(token: u32, head: u32, pair_of_head: u32, scale: f32) {
  let pair = head * (params.width / 2u) + pair_of_head;
  let rows = pair_rows(pair);
  let start = token * heads() * params.width;
  var values = vec2f(qkv[start + rows.x], qkv[start + rows.y]);
  if (is_normed(head)) {
    values *= scale * vec2f(norm_weight(head, rows.x), norm_weight(head, rows.y));
  }
  turn_and_store(token, pair, values);
}
