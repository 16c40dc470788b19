// A dequantised weight. A file octets_* says how the weight is stored: `quants(row, columns)` returns eight
// stored columns, `sixteen(row, low, high)` those of two adjacent octets, and `affine(row, columns)` their
// (scale, minimum).
// needs: shared/weights/places, weight = shared/weights/octets_*

fn dequantised(row: Row, columns: EightColumns) -> mat2x4f {
  let values = quants(row, columns);
  let scale = affine(row, columns);
  return mat2x4f(values[0] * scale.x + scale.y, values[1] * scale.x + scale.y);
}
