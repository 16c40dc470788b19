// The causal mask: each token sees itself and all before it; this call's tokens begin at start_pos. Its first
// ones, `together`, may be those of an image, which see each other.
// needs: attention/fragments/io, attention/fragments/tiles

@group(0) @binding(6) var<uniform> start_pos: vec4i;

fn context_begin() -> u32 {
  return 0u;
}

fn context_length() -> u32 {
  return u32(start_pos.x) + params.kv_tokens;
}

fn row_of(position: u32) -> u32 {
  return position;
}

fn rows_of(positions: vec4u) -> vec4u {
  return positions;
}

fn visible_begin(tile: Tile) -> u32 {
  return 0u;
}

fn visible_end(tile: Tile) -> u32 {
  // The tile's last row is its latest token.
  return u32(start_pos.x) + max(tile.tokens.w + 1u, params.together);
}

fn apply_mask(scores: vec4f, position: u32, tile: Tile) -> vec4f {
  let ends = max(tile.tokens + 1u, vec4u(params.together)) + u32(start_pos.x);
  return select(vec4f(MASKED), scores, vec4u(position) < ends);
}
