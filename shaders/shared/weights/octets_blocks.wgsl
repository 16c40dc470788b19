// Octets of any weight that there is a file blocks_* for: an octet is taken out of its block.
// needs: shared/weights/sixteen, shared/weights/packed_values, shared/weights/order, blocks = shared/weights/blocks_*

const OCTETS_OF_HALF = 4u / HALVES;

fn octet_of(held: WeightBlock, octet: u32) -> mat2x4f {
  let bytes = weight_bytes(held, octet % 4u);
  return ungrouped(mat2x4f(signed_bytes(bytes.x) * BYTE_UNIT, signed_bytes(bytes.y) * BYTE_UNIT));
}

fn quants(row: u32, octet: u32) -> mat2x4f {
  return octet_of(load_block(row, octet / 4u), octet);
}

fn sixteen(row: u32, pair: u32) -> Sixteen {
  let held = load_block(row, pair / 2u);
  return Sixteen(octet_of(held, 2u * pair), octet_of(held, 2u * pair + 1u));
}

fn affine(row: u32, octet: u32) -> vec2f {
  return half_affine(load_block(row, octet / 4u), octet % 4u / OCTETS_OF_HALF);
}
