// Products with blocks of x that form_planes.wgsl splits into two planes.
// needs: linear/fragments/plane_layout, linear/fragments/two_plane_dots, linear/fragments/rows_by_planes, linear/fragments/plane_sums, blocks = shared/weights/blocks_*, @x_tiles

struct Token {
  a: vec4u,  // two planes of an octet
  b: vec4u,
  c: vec4u,
  d: vec4u,
  facts: vec4f,
}

fn token_of(first: u32, step: u32) -> Token {
  return Token(
    x_tiles[first],
    x_tiles[first + step],
    x_tiles[first + 2u * step],
    x_tiles[first + 3u * step],
    bitcast<vec4f>(x_tiles[first + FACTS * step]),
  );
}

fn block_dot(row: Row, token: Token) -> f32 {
  let first = whole(row.first, token.a, token.b);
  let second = whole(row.second, token.c, token.d);
  if (HALVES == 2u) {
    return scaled(row, f32(first), f32(second), token.facts);
  }
  return scaled(row, f32(first + second), 0.0, token.facts);
}
