// 4-bit weights with one f32 scale a row: (nibble - 8) * scale. The even column of a byte is in its high
// nibble. Rows are K / 2 bytes: with K % 8 == 4 every other row begins in the middle of a word.
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
  let quad = row.start + 2u * columns.octet;
  var word = weight[quad / 2u];
  if (quad % 2u == 1u) {
    let last = arrayLength(&weight) - 1u;  // x is zero past it
    word = (word >> 16u) | (weight[min(quad / 2u + 1u, last)] << 16u);
  }
  return centred_nibbles(((word & 0x0f0f0f0fu) << 4u) | ((word >> 4u) & 0x0f0f0f0fu));
}

fn sixteen(row: Row, low: EightColumns, high: EightColumns) -> Sixteen {
  return Sixteen(quants(row, low), quants(row, high));
}

fn affine(row: Row, columns: EightColumns) -> vec2f {
  return vec2f(scales[row.scale], 0.0);
}
