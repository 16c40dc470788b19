// A mask given as a tensor, or none: without one every token sees every other. With a window, it sees those less than
// `window` positions away, before and behind it.
// needs: attention/fragments/io, attention/fragments/tiles

const NO_MASK = 0u;
const FLOAT_MASK = 1u;  // added to the scores
const BOOL_MASK = 2u;  // 1: visible, 0: masked
const MINUS_INFINITY = 0xff800000u;

@group(0) @binding(6) var<storage, read> mask: array<u32>;

fn context_begin() -> u32 {
  return 0u;
}

fn context_length() -> u32 {
  return params.kv_tokens;
}

fn row_of(position: u32) -> u32 {
  return position;
}

fn rows_of(positions: vec4u) -> vec4u {
  return positions;
}

fn visible_begin(tile: Tile) -> u32 {
  let end = tile.tokens.x + 1u;  // the tile's first row is its earliest token
  return select(end - min(end, params.window), 0u, params.window == 0u);
}

fn visible_end(tile: Tile) -> u32 {
  let end = min(tile.tokens.w + params.window, params.kv_tokens);  // the last row is the latest
  return select(end, params.kv_tokens, params.window == 0u);
}

fn mask_score(score: f32, position: u32, batch: u32, head: u32, token: u32) -> f32 {
  let bits = mask[dot(params.mask_strides, vec4u(batch, head, token, position))];
  if (params.mask_kind == BOOL_MASK) {
    return select(MASKED, score, bits != 0u);
  }
  // Compare infinity by its bits; -1e30 swallows any score, as the lowest float would.
  return select(score + max(bitcast<f32>(bits), -1e30), MASKED, bits == MINUS_INFINITY);
}

fn within_window(scores: vec4f, position: u32, tokens: vec4u) -> vec4f {
  let is_near = (vec4u(position + params.window) > tokens) & (vec4u(position) < tokens + params.window);
  return select(vec4f(MASKED), scores, is_near | vec4<bool>(params.window == 0u));
}

fn apply_mask(scores: vec4f, position: u32, tile: Tile) -> vec4f {
  if (position >= params.kv_tokens) {
    return vec4f(MASKED);
  }
  if (params.mask_kind == NO_MASK) {
    return within_window(scores, position, tile.tokens);
  }
  let masked = vec4f(
    mask_score(scores.x, position, tile.batch, tile.heads.x, tile.tokens.x),
    mask_score(scores.y, position, tile.batch, tile.heads.y, tile.tokens.y),
    mask_score(scores.z, position, tile.batch, tile.heads.z, tile.tokens.z),
    mask_score(scores.w, position, tile.batch, tile.heads.w, tile.tokens.w),
  );
  return within_window(masked, position, tile.tokens);
}
