// Every token sees every other, but for what a mask takes away.
// needs: attention/fragments/io, attention/fragments/tiles

const NO_MASK = 0u;
const FLOAT_MASK = 1u;  // added to the scores
const BOOL_MASK = 2u;  // 1 sees, 0 does not
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

fn seen_begin(tile: Tile) -> u32 {
  return 0u;
}

fn seen_length(tile: Tile) -> u32 {
  return params.kv_tokens;
}

fn masked(score: f32, position: u32, batch: u32, head: u32, token: u32) -> f32 {
  let bits = mask[dot(params.mask_strides, vec4u(batch, head, token, position))];
  if (params.mask_kind == BOOL_MASK) {
    return select(UNSEEN, score, bits != 0u);
  }
  // Infinity is told by its bits; -1e30 swallows any score, as the lowest float would.
  return select(score + max(bitcast<f32>(bits), -1e30), UNSEEN, bits == MINUS_INFINITY);
}

fn seen(scores: vec4f, position: u32, tile: Tile) -> vec4f {
  if (position >= params.kv_tokens) {
    return vec4f(UNSEEN);
  }
  if (params.mask_kind == NO_MASK) {
    return scores;
  }
  return vec4f(
    masked(scores.x, position, tile.batch, tile.heads.x, tile.tokens.x),
    masked(scores.y, position, tile.batch, tile.heads.y, tile.tokens.y),
    masked(scores.z, position, tile.batch, tile.heads.z, tile.tokens.z),
    masked(scores.w, position, tile.batch, tile.heads.w, tile.tokens.w),
  );
}
