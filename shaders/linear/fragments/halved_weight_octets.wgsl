// A block of a row of the weight in halves, for all other weights: zeros past the end of K.
// needs: shared/weights/dequantise, shared/packed_halves, weight = shared/weights/octets_*

struct Held {
  row: u32,
  block: u32,
}

fn hold(row: u32, block: u32) -> Held {
  return Held(row, block);
}

fn halved_octet(held: Held, octet: u32) -> vec4u {
  let place = 4u * held.block + octet;
  if (place >= params.shape.octets) {
    return vec4u();
  }
  return packed_halves(raised(row_at(held.row), columns_at(place)));
}
