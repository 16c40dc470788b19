// 4-bit weights with one f32 scale a group: (nibble - 8) * scale. Rows are whole words of eight values.
// needs: shared/weights/places, shared/weights/packed_values, @row_scales

const UNIT = 1.0;

// Whether the even column of each byte is in its high nibble.
override HIGH_FIRST: bool = false;

@group(0) @binding(0) var<storage, read> weight: array<u32>;
@group(0) @binding(1) var<storage, read> scales: array<f32>;

fn row_at(row: u32) -> Row {
  let of_row = row_scales(row);
  return Row(row * params.shape.octets, of_row.x, of_row.y);
}

fn columns_at(octet: u32) -> EightColumns {
  return EightColumns(octet, 0u, 0u, octet / params.shape.octets_per_group);
}

fn quants(row: Row, columns: EightColumns) -> mat2x4f {
  var word = weight[row.start + columns.octet];
  if (HIGH_FIRST) {
    word = ((word & 0x0f0f0f0fu) << 4u) | ((word >> 4u) & 0x0f0f0f0fu);
  }
  return centred_nibbles(word);
}

fn sixteen(row: Row, low: EightColumns, high: EightColumns) -> Sixteen {
  return Sixteen(quants(row, low), quants(row, high));
}

fn affine(row: Row, columns: EightColumns) -> vec2f {
  return vec2f(scales[row.scale + columns.group * row.scale_step], 0.0);
}
