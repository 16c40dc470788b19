// The sliding-window mask: as mask_causal.wgsl, but a token sees the last `window` positions, its own included.
// needs: attention/fragments/io, attention/fragments/tiles

@group(0) @binding(6) var<uniform> start_pos: vec4i;

fn first_visible(token: u32) -> u32 {
  let end = u32(start_pos.x) + token + 1u;
  return end - min(end, params.window);
}

// Positions that no token of this call sees are in no split.
fn context_begin() -> u32 {
  return first_visible(0u);
}

fn context_length() -> u32 {
  return u32(start_pos.x) + params.kv_tokens;
}

// Caches may be rings with fewer rows than there are positions.
fn row_of(position: u32) -> u32 {
  return position % params.kv_rows;
}

fn rows_of(positions: vec4u) -> vec4u {
  return positions % params.kv_rows;
}

fn visible_begin(tile: Tile) -> u32 {
  return first_visible(tile.tokens.x);  // the tile's first row is its earliest token
}

fn visible_end(tile: Tile) -> u32 {
  // The tile's last row is its latest token.
  return u32(start_pos.x) + max(tile.tokens.w + 1u, params.together);
}

fn apply_mask(scores: vec4f, position: u32, tile: Tile) -> vec4f {
  let tokens = tile.tokens + u32(start_pos.x);
  let ends = max(tokens + 1u, vec4u(params.together + u32(start_pos.x)));
  let is_visible = (vec4u(position) < ends) & (vec4u(position + params.window) > tokens);
  return select(vec4f(MASKED), scores, is_visible);
}
