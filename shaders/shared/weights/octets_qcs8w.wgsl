// 8-bit weights with one f32 scale a row: value * scale. weight: [rows, K / 4] words.
// needs: shared/weights/places, shared/weights/packed_values

const UNIT = 1.0;

@group(0) @binding(0) var<storage, read> weight: array<u32>;
@group(0) @binding(1) var<storage, read> scales: array<f32>;

fn row_at(row: u32) -> Row {
  return Row(row * params.shape.quads, row, 0u);
}

fn columns_at(octet: u32) -> EightColumns {
  return EightColumns(octet, 0u, 0u, 0u);
}

fn quants(row: Row, columns: EightColumns) -> mat2x4f {
  let quad = 2u * columns.octet;
  let last = params.shape.quads - 1u;  // x is zero beyond it
  return mat2x4f(
    signed_bytes(weight[row.start + quad]),
    signed_bytes(weight[row.start + min(quad + 1u, last)]),
  );
}

fn sixteen(row: Row, low: EightColumns, high: EightColumns) -> Sixteen {
  return Sixteen(quants(row, low), quants(row, high));
}

fn affine(row: Row, columns: EightColumns) -> vec2f {
  return vec2f(scales[row.scale], 0.0);
}
