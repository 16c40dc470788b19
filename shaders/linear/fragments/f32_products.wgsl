// The products of gemv_f32.wgsl for one kind of weights in blocks (see blocks_q8_0.wgsl): four bytes of a word
// become floats in registers.
// needs: linear/fragments/pair_shares, linear/fragments/f32_token, linear/fragments/held_blocks, shared/weights/float_octet, blocks = shared/weights/blocks_*, shared/octets

const HALF_OCTETS = 4u / HALVES;

// The dot product of a half that has one scale.
fn half_dot(held: WeightBlock, place: u32, half: u32) -> f32 {
  let affine = half_affine(held, half);
  var sum = 0.0;
  var added = 0.0;
  for (var of_half = 0u; of_half < HALF_OCTETS; of_half++) {
    let at = half * HALF_OCTETS + of_half;
    sum += octet_dot(float_octet(held, at), x_tile[place].octets[at]);
    added += x_tile[place].sums[at];
  }
  // The bytes' unit comes first: a scale may be too small for it.
  sum *= BYTE_UNIT;
  sum *= affine.x;
  if (ADDS) {
    sum += affine.y * added;
  }
  return sum;
}

fn block_dot(held: WeightBlock, place: u32) -> f32 {
  var sum = half_dot(held, place, 0u);
  if (HALVES == 2u) {
    sum += half_dot(held, place, 1u);
  }
  return sum;
}

// Computes an invocation's share of the products with a pair of rows.
fn share_of(rows: vec2u, lane: u32, writes: bool) -> Share {
  let member = own_member(lane);
  let blocks = params.shape.octets / 4u;
  var share = Share();
  var next = fetch(rows, member);
  prepare_token(lane, writes);
  for (var tile = 0u; tile < blocks; tile += TILE) {
    share.squares += lay_out(tile, lane);
    let count = min(TILE, blocks - tile);
    for (var place = member; place < count; place += UNROLL * PAIR_LANES) {
      var now = next;
      next = fetch(rows, tile + place + UNROLL * PAIR_LANES);
      for (var step = 0u; step < UNROLL; step++) {
        share.sums.x += block_dot(now.upper[step], place + step * PAIR_LANES);
        share.sums.y += block_dot(now.lower[step], place + step * PAIR_LANES);
      }
    }
    workgroupBarrier();
  }
  return share;
}
