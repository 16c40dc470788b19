// A block of a row of the weight in halves, for weights in blocks of 32 columns.
// needs: shared/weights/float_octet, shared/packed_halves, blocks = shared/weights/blocks_*

const UNIT = BYTE_UNIT;
alias Held = WeightBlock;

fn hold(row: u32, block: u32) -> Held {
  return load_block(row, block);
}

fn halved_octet(held: Held, octet: u32) -> vec4u {
  let affine = half_affine(held, octet * HALVES / 4u);
  var values = affine.x * float_octet(held, octet);
  if (ADDS) {
    let least = vec4f(affine.y * (1.0 / BYTE_UNIT));
    values += mat2x4f(least, least);
  }
  return packed_halves(values);
}
