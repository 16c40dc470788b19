// Attention of four query rows over one split of the context, with an online softmax: scores are never
// stored. Fragments say how q, k and v are read and what the mask is; reduce.wgsl adds up the splits.
//
// A tile is four query rows that share a key and value head: rows count token by token, and within a token
// through the query heads of that group. A tile's rows are the columns of a mat4x4f, four dims of the head
// ("a quad") its rows. Loads dominate on software adapters, so every key and value is used for four rows,
// and every query for sixteen positions. Weighted sums are kept in memory, where they cost one load and
// store a block, because arrays in registers cannot be indexed.
// needs: attention/fragments/io, attention/fragments/splits, attention/fragments/tiles, loads = attention/fragments/loads_*, mask = attention/fragments/mask_*, score = attention/fragments/score_*

override WORKGROUP: u32 = 32u;
const BLOCK = 16u;  // positions taken at a time

fn mask_block(scores: mat4x4f, position: u32, tile: Tile) -> mat4x4f {
  return mat4x4f(
    apply_mask(scored(scores[0]), position, tile),
    apply_mask(scored(scores[1]), position + 1u, tile),
    apply_mask(scored(scores[2]), position + 2u, tile),
    apply_mask(scored(scores[3]), position + 3u, tile),
  );
}

fn max_of_columns(m: mat4x4f) -> vec4f {
  return max(max(m[0], m[1]), max(m[2], m[3]));
}

fn sum_of_columns(m: mat4x4f) -> vec4f {
  return (m[0] + m[1]) + (m[2] + m[3]);
}

fn weights(scores: mat4x4f, top: vec4f) -> mat4x4f {
  return mat4x4f(
    exp(scores[0] - top),
    exp(scores[1] - top),
    exp(scores[2] - top),
    exp(scores[3] - top),
  );
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) workgroups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = (workgroup.y * workgroups.x + workgroup.x) * WORKGROUP + lane;
  let split = index / (params.tiles * params.heads);
  if (split >= params.splits) {
    return;
  }
  let batch = index / params.tiles % params.heads / params.kv_heads;
  let kv_head = index / params.tiles % params.kv_heads;
  // The last tile's missing rows repeat the last row.
  let rows = min(vec4u(index % params.tiles * TILE_ROWS) + vec4u(0, 1, 2, 3), vec4u(params.rows - 1u));
  let tile = Tile(batch, kv_head * params.group + rows % params.group, rows / params.group);
  let q_at = batch * params.q_batch + tile.tokens * params.q_token + tile.heads * params.q_head;
  let kv_at = batch * params.kv_batch + kv_head * params.kv_head;

  let context = context_length();
  let walked = context - context_begin();
  let blocks = (walked + params.splits * BLOCK - 1u) / (params.splits * BLOCK);  // of a split
  let own_begin = context_begin() + split * blocks * BLOCK;
  // Skip whole blocks only: a partial one would reach into the next split.
  let begin = own_begin + (max(own_begin, visible_begin(tile)) - own_begin) / BLOCK * BLOCK;
  let end = min(min(own_begin + blocks * BLOCK, context), visible_end(tile));
  let quads = (params.width + 3u) / 4u;
  var top = vec4f(MASKED);
  var sum = vec4f();
  for (var c = begin; c < end; c += BLOCK) {
    let last = vec4u(context - 1u);
    let at0 = kv_at + rows_of(min(c + vec4u(0, 1, 2, 3), last)) * params.kv_token;
    let at1 = kv_at + rows_of(min(c + vec4u(4, 5, 6, 7), last)) * params.kv_token;
    let at2 = kv_at + rows_of(min(c + vec4u(8, 9, 10, 11), last)) * params.kv_token;
    let at3 = kv_at + rows_of(min(c + vec4u(12, 13, 14, 15), last)) * params.kv_token;

    // A column for each position, a row for each query row.
    var s0 = mat4x4f();
    var s1 = mat4x4f();
    var s2 = mat4x4f();
    var s3 = mat4x4f();
    for (var quad = 0u; quad < quads; quad++) {
      let queries = transpose(load_queries(q_at, quad));
      s0 += queries * load_keys(at0, quad);
      s1 += queries * load_keys(at1, quad);
      s2 += queries * load_keys(at2, quad);
      s3 += queries * load_keys(at3, quad);
    }
    s0 = mask_block(s0, c, tile);
    s1 = mask_block(s1, c + 4u, tile);
    s2 = mask_block(s2, c + 8u, tile);
    s3 = mask_block(s3, c + 12u, tile);

    let block_top = max(
      max(max_of_columns(s0), max_of_columns(s1)),
      max(max_of_columns(s2), max_of_columns(s3)),
    );
    let new_top = max(top, block_top);
    let shrink = exp(top - new_top);  // rescales the sums so far
    top = new_top;
    s0 = weights(s0, top);
    s1 = weights(s1, top);
    s2 = weights(s2, top);
    s3 = weights(s3, top);
    sum = sum * shrink + (sum_of_columns(s0) + sum_of_columns(s1))
      + (sum_of_columns(s2) + sum_of_columns(s3));

    let w0 = transpose(s0);
    let w1 = transpose(s1);
    let w2 = transpose(s2);
    let w3 = transpose(s3);
    for (var quad = 0u; quad < quads; quad++) {
      var weighted = load_values(at0, quad) * w0 + load_values(at1, quad) * w1
        + load_values(at2, quad) * w2 + load_values(at3, quad) * w3;
      let at = index * quads + quad;
      if (c != begin) {
        weighted += scale_columns(sums[at], shrink);
      }
      sums[at] = weighted;
    }
  }
  stats[index] = Stats(top, sum);
}
