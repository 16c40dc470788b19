// The products of gemv_f32.wgsl for one kind of weights in blocks (see blocks_q8_0.wgsl): four bytes of a word
// become floats in registers.
// needs: linear/fragments/pair_tile, linear/fragments/pair_shares, linear/fragments/f32_token, linear/fragments/held_blocks, shared/weights/float_octet, blocks = shared/weights/blocks_*, shared/octets, @Invocation

const HALF_OCTETS = 4u / HALVES;

// The dot products of a half that has one scale, with two rows.
fn half_dots(upper: WeightBlock, lower: WeightBlock, place: u32, half: u32) -> vec2f {
  var sums = vec2f();
  var added = 0.0;
  for (var of_half = 0u; of_half < HALF_OCTETS; of_half++) {
    let at = half * HALF_OCTETS + of_half;
    let columns = x_tile[place].octets[at];
    sums.x += octet_dot(float_octet(upper, at), columns);
    sums.y += octet_dot(float_octet(lower, at), columns);
    added += x_tile[place].sums[at];
  }
  let above = half_affine(upper, half);
  let below = half_affine(lower, half);
  // The bytes' unit comes first: a scale may be too small for it.
  sums *= BYTE_UNIT;
  sums *= vec2f(above.x, below.x);
  if (ADDS) {
    sums += added * vec2f(above.y, below.y);
  }
  return sums;
}

fn block_dots(upper: WeightBlock, lower: WeightBlock, place: u32) -> vec2f {
  var sums = half_dots(upper, lower, place, 0u);
  if (HALVES == 2u) {
    sums += half_dots(upper, lower, place, 1u);
  }
  return sums;
}

// Computes an invocation's share of the products with a pair of rows.
fn share_of(rows: vec2u, own: Invocation, writes: bool) -> Share {
  let member = own_member(own.lane);
  let blocks = params.shape.octets / 4u;
  var share = Share();
  var next = fetch(rows, member);
  prepare_token(own, writes);
  for (var tile = 0u; tile < blocks; tile += TILE) {
    share.squares += lay_out(tile, own.lane);
    let count = min(TILE, blocks - tile);
    for (var place = member; place < count; place += UNROLL * PAIR_LANES) {
      var now = next;
      next = fetch(rows, tile + place + UNROLL * PAIR_LANES);
      for (var step = 0u; step < UNROLL; step++) {
        share.sums += block_dots(now.upper[step], now.lower[step], place + step * PAIR_LANES);
      }
    }
    workgroupBarrier();
  }
  return share;
}
