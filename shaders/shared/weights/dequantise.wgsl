// A weight as it is meant. A file octets_* says how a row is stored: `quants(row, octet)` gives eight
// columns as they are, `sixteen(row, pair)` those of two octets that lie side by side, and
// `affine(row, octet)` their (scale, minimum).
// needs: weight = shared/weights/octets_*

fn dequantised(row: u32, octet: u32) -> mat2x4f {
  let values = quants(row, octet);
  let scale = affine(row, octet);
  return mat2x4f(values[0] * scale.x + scale.y, values[1] * scale.x + scale.y);
}
