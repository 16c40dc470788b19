// Weights in f32, K / 4 vectors a row.
// needs: shared/weights/places

const UNIT = 1.0;

@group(0) @binding(0) var<storage, read> weight: array<vec4f>;

fn row_at(row: u32) -> Row {
  return Row(row * params.shape.quads, 0u, 0u);
}

fn columns_at(octet: u32) -> EightColumns {
  return EightColumns(octet, 0u, 0u, 0u);
}

fn quants(row: Row, columns: EightColumns) -> mat2x4f {
  let quad = 2u * columns.octet;
  let last = params.shape.quads - 1u;  // x is zero beyond it
  return mat2x4f(weight[row.start + quad], weight[row.start + min(quad + 1u, last)]);
}

fn sixteen(row: Row, low: EightColumns, high: EightColumns) -> Sixteen {
  return Sixteen(quants(row, low), quants(row, high));
}

fn affine(row: Row, columns: EightColumns) -> vec2f {
  return vec2f(1.0, 0.0);
}
