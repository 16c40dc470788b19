// One token in floats in workgroup memory, for gemv_f32.wgsl, in the order of its columns.
// needs: linear/fragments/norm, linear/fragments/pair_tile

const MAX_TILE = 80u;  // as many blocks fit the memory of every workgroup

// 32 columns of x. The sums keep neighbours in different banks.
struct Columns {
  octets: array<mat2x4f, 4>,
  sums: array<f32, 4>,  // of each octet's columns
}

var<workgroup> x_tile: array<Columns, TILE>;

// Lays out a tile of x; returns this invocation's share of the squares that the norm divides by.
fn lay_out(first_block: u32, lane: u32) -> f32 {
  var squares = 0.0;
  for (var at = 0u; at < OCTETS; at++) {
    let place = at * WORKGROUP + lane;
    let octet = 4u * first_block + place;
    if (place < 4u * TILE) {
      var values = mat2x4f();
      var sum = 0.0;
      if (octet < params.shape.octets) {
        let own = normed_octet(octet);
        squares += own.squares;
        values = own.values;
        sum = own.sum;
      }
      x_tile[place / 4u].octets[place % 4u] = values;
      x_tile[place / 4u].sums[place % 4u] = sum;
    }
  }
  workgroupBarrier();
  return squares;
}
