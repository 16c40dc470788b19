// 4-bit weights in groups of 32 with an f16 scale and minimum each: nibble * scale + minimum.
// weight: [rows, K / 8] words; scales: [rows, K / 32] words of (scale, minimum).
// needs: shared/weights/places, shared/weights/packed_values

const UNIT = 1.0;

@group(0) @binding(0) var<storage, read> weight: array<vec2u>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;

fn row_at(row: u32) -> Row {
  return Row(row * (params.shape.octets / 2u), row * (params.shape.octets / 4u), 1u);
}

fn columns_at(octet: u32) -> EightColumns {
  return EightColumns(octet, octet >> 1u, octet & 1u, octet >> 2u);
}

fn quants(row: Row, columns: EightColumns) -> mat2x4f {
  return unsigned_nibbles(weight[row.start + columns.pair][columns.odd]);
}

fn sixteen(row: Row, low: EightColumns, high: EightColumns) -> Sixteen {
  let words = weight[row.start + low.pair];
  return Sixteen(unsigned_nibbles(words.x), unsigned_nibbles(words.y));
}

fn affine(row: Row, columns: EightColumns) -> vec2f {
  return unpack2x16float(scales[row.scale + columns.group]);
}
