// Products with blocks of x that form_three_planes.wgsl splits.
// needs: linear/fragments/plane_layout_three, linear/fragments/int8_planes, linear/fragments/two_plane_dots, linear/fragments/rows_by_planes, linear/fragments/plane_sums, blocks = shared/weights/blocks_*, @x_tiles

struct Token {
  a: vec4u,  // two planes of an octet
  b: vec4u,
  c: vec4u,
  d: vec4u,
  first_fine: vec4u,  // the third plane of 16 columns
  second_fine: vec4u,
  facts: vec4f,
}

fn token_of(first: u32, step: u32) -> Token {
  return Token(
    x_tiles[first],
    x_tiles[first + step],
    x_tiles[first + 2u * step],
    x_tiles[first + 3u * step],
    x_tiles[first + FINE_FIRST * step],
    x_tiles[first + FINE_SECOND * step],
    bitcast<vec4f>(x_tiles[first + FACTS * step]),
  );
}

fn fine_dot(bytes: vec4u, plane: vec4u) -> i32 {
  return dot4I8Packed(bytes.x, plane.x) + dot4I8Packed(bytes.y, plane.y)
    + dot4I8Packed(bytes.z, plane.z) + dot4I8Packed(bytes.w, plane.w);
}

fn joined(whole: i32, fine: i32) -> f32 {
  return f32(whole) + f32(fine) * (1.0 / FINE);
}

fn block_dot(row: Row, token: Token) -> f32 {
  let first = whole(row.first, token.a, token.b);
  let second = whole(row.second, token.c, token.d);
  let first_fine = fine_dot(row.first, token.first_fine);
  let second_fine = fine_dot(row.second, token.second_fine);
  if (HALVES == 2u) {
    return scaled(row, joined(first, first_fine), joined(second, second_fine), token.facts);
  }
  return scaled(row, joined(first + second, first_fine + second_fine), 0.0, token.facts);
}
