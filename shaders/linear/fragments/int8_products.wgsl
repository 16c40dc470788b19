// The products of gemv_int8.wgsl for one kind of weights in blocks (see blocks_q8_0.wgsl), and x laid out to
// match it.
// needs: linear/fragments/norm, linear/fragments/pair_tile, linear/fragments/pair_shares, linear/fragments/int8_planes, linear/fragments/scale_of_block, linear/fragments/int8_token, linear/fragments/held_blocks, blocks = shared/weights/blocks_*, shared/weights/order, @Invocation

const HALF_OCTETS = 4u / HALVES;

fn split_octet(block: u32, octet_of_block: u32, octet: mat2x4f, by: f32) {
  let columns = by * grouped(octet);
  x_tile[block].planes[octet_of_block] = two_planes(columns);
  x_tile[block].fine[octet_of_block] = vec2u(fine_plane(columns[0]), fine_plane(columns[1]));
}

// Lays out a tile of x as planes; returns this invocation's share of the squares that the norm divides by.
fn lay_out(first_block: u32, lane: u32) -> f32 {
  var octets = array<mat2x4f, MAX_OCTETS>();
  var squares = 0.0;
  for (var at = 0u; at < OCTETS; at++) {
    let place = at * WORKGROUP + lane;
    let octet = 4u * first_block + place;
    if (place < 4u * TILE && octet < params.shape.octets) {
      let own = normed_octet(octet);
      squares += own.squares;
      octets[at] = own.values;
      octet_facts[place] = vec2f(top_of(own.values), own.sum);
    } else if (place < 4u * TILE) {
      octet_facts[place] = vec2f();
    }
  }
  workgroupBarrier();
  for (var at = 0u; at < OCTETS; at++) {
    let place = at * WORKGROUP + lane;
    if (place < 4u * TILE) {
      let block = place / 4u;
      let upper = max(octet_facts[4u * block].x, octet_facts[4u * block + 1u].x);
      let top = max(upper, max(octet_facts[4u * block + 2u].x, octet_facts[4u * block + 3u].x));
      split_octet(block, place % 4u, octets[at], TOP / max(top, 1e-30));
      if (place % 4u == 0u) {
        let sum = (octet_facts[place].y + octet_facts[place + 1u].y)
          + (octet_facts[place + 2u].y + octet_facts[place + 3u].y);
        x_tile[block].scale = BYTE_UNIT * scale_of(top, sum);
        x_tile[block].sums = vec2f(sum, 0.0);
        if (HALVES == 2u) {
          x_tile[block].sums = vec2f(
            octet_facts[place].y + octet_facts[place + 1u].y,
            octet_facts[place + 2u].y + octet_facts[place + 3u].y,
          );
        }
      }
    }
  }
  workgroupBarrier();
  return squares;
}

// The dot product of a half that has one scale, before the scale of x is applied.
fn half_dot(held: WeightBlock, columns: Columns, half: u32) -> f32 {
  var high = 0;
  var low = 0;
  var fine = 0;
  for (var of_half = 0u; of_half < HALF_OCTETS; of_half++) {
    let at = half * HALF_OCTETS + of_half;
    let bytes = weight_bytes(held, at);
    let planes = columns.planes[at];
    high += dot4I8Packed(bytes.x, planes.x) + dot4I8Packed(bytes.y, planes.y);
    low += dot4I8Packed(bytes.x, planes.z) + dot4I8Packed(bytes.y, planes.w);
    fine += dot4I8Packed(bytes.x, columns.fine[at].x) + dot4I8Packed(bytes.y, columns.fine[at].y);
  }
  return f32(256 * high + low) + f32(fine) * (1.0 / FINE);
}

fn block_dot(held: WeightBlock, columns: Columns) -> f32 {
  let first = half_affine(held, 0u);
  var sum = first.x * half_dot(held, columns, 0u);
  var added = first.y * columns.sums.x;
  if (HALVES == 2u) {
    let second = half_affine(held, 1u);
    sum += second.x * half_dot(held, columns, 1u);
    added += second.y * columns.sums.y;
  }
  sum *= columns.scale;
  if (ADDS) {
    sum += added;
  }
  return sum;
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
        let columns = x_tile[place + step * PAIR_LANES];
        share.sums.x += block_dot(now.upper[step], columns);
        share.sums.y += block_dot(now.lower[step], columns);
      }
    }
    workgroupBarrier();
  }
  return share;
}
