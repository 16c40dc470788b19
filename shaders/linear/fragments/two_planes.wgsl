// Products of a row's block with a token's, which form_planes.wgsl has split into two int8 planes.
// needs: linear/fragments/plane_layout, linear/fragments/rows_by_planes, linear/fragments/plane_sums, blocks = shared/weights/blocks_*, @x_tiles

struct Token {
  a: vec4u,  // two planes of an octet
  b: vec4u,
  c: vec4u,
  d: vec4u,
  facts: vec4f,
}

// first: the place of its first vector in workgroup memory, step: from there to the next one.
fn token_of(first: u32, step: u32) -> Token {
  return Token(
    x_tiles[first],
    x_tiles[first + step],
    x_tiles[first + 2u * step],
    x_tiles[first + 3u * step],
    bitcast<vec4f>(x_tiles[first + FACTS * step]),
  );
}

struct Planes {
  high: i32,
  low: i32,
}

fn whole(planes: Planes) -> f32 {
  return f32(256 * planes.high + planes.low);
}

// Adds the products of 16 columns to earlier ones: a GPU does so as it multiplies.
fn with_half(before: Planes, bytes: vec4u, even: vec4u, odd: vec4u) -> Planes {
  var high = before.high + dot4I8Packed(bytes.x, even.x);
  high += dot4I8Packed(bytes.y, even.y);
  high += dot4I8Packed(bytes.z, odd.x);
  high += dot4I8Packed(bytes.w, odd.y);
  var low = before.low + dot4I8Packed(bytes.x, even.z);
  low += dot4I8Packed(bytes.y, even.w);
  low += dot4I8Packed(bytes.z, odd.z);
  low += dot4I8Packed(bytes.w, odd.w);
  return Planes(high, low);
}

fn block_dot(row: Row, token: Token) -> f32 {
  let first = with_half(Planes(), row.first, token.a, token.b);
  if (HALVES == 2u) {
    let second = with_half(Planes(), row.second, token.c, token.d);
    return scaled(row, whole(first), whole(second), token.facts);
  }
  return scaled(row, whole(with_half(first, row.second, token.c, token.d)), 0.0, token.facts);
}
