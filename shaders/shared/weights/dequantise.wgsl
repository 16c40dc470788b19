// A weight as it is meant. A file octets_* says how it is stored: `quants(row, columns)` gives eight
// columns as they are, `sixteen(row, low, high)` those of two octets that lie side by side, and
// `affine(row, columns)` their (scale, minimum).
// needs: shared/weights/places, weight = shared/weights/octets_*

fn dequantised(row: Row, columns: EightColumns) -> mat2x4f {
  let values = quants(row, columns);
  let scale = affine(row, columns);
  return mat2x4f(values[0] * scale.x + scale.y, values[1] * scale.x + scale.y);
}
