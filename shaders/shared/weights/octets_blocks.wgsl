// Octets of any weight that has a file blocks_*: an octet is taken out of its block.
// needs: shared/weights/places, shared/weights/packed_values, shared/weights/order, blocks = shared/weights/blocks_*

const OCTETS_OF_HALF = 4u / HALVES;

fn row_at(row: u32) -> Row {
  return Row(row, 0u, 0u);
}

fn columns_at(octet: u32) -> EightColumns {
  return EightColumns(octet, 0u, 0u, octet >> 2u);
}

fn octet_of(held: WeightBlock, octet: u32) -> mat2x4f {
  let bytes = weight_bytes(held, octet & 3u);
  return ungrouped(mat2x4f(signed_bytes(bytes.x) * BYTE_UNIT, signed_bytes(bytes.y) * BYTE_UNIT));
}

fn quants(row: Row, columns: EightColumns) -> mat2x4f {
  return octet_of(load_block(row.start, columns.group), columns.octet);
}

fn sixteen(row: Row, low: EightColumns, high: EightColumns) -> Sixteen {
  let held = load_block(row.start, low.group);
  return Sixteen(octet_of(held, low.octet), octet_of(held, high.octet));
}

fn affine(row: Row, columns: EightColumns) -> vec2f {
  let half = (columns.octet & 3u) / OCTETS_OF_HALF;
  return half_affine(load_block(row.start, columns.group), half);
}
