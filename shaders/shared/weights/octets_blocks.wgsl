// Octets of any weight that has a file blocks_*: an octet is taken out of its block.
// needs: shared/weights/places, shared/weights/float_octet, blocks = shared/weights/blocks_*

const UNIT = BYTE_UNIT;
const OCTETS_OF_HALF = 4u / HALVES;

fn row_at(row: u32) -> Row {
  return Row(row, 0u, 0u);
}

fn columns_at(octet: u32) -> EightColumns {
  return EightColumns(octet, 0u, 0u, octet >> 2u);
}

fn quants(row: Row, columns: EightColumns) -> mat2x4f {
  return float_octet(load_block(row.start, columns.group), columns.octet & 3u);
}

fn sixteen(row: Row, low: EightColumns, high: EightColumns) -> Sixteen {
  let held = load_block(row.start, low.group);
  return Sixteen(
    float_octet(held, low.octet & 3u),
    float_octet(held, high.octet & 3u),
  );
}

fn affine(row: Row, columns: EightColumns) -> vec2f {
  let half = (columns.octet & 3u) / OCTETS_OF_HALF;
  return half_affine(load_block(row.start, columns.group), half);
}
