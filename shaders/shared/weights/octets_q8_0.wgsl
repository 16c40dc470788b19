// 8-bit weights in groups of 32 with an f16 scale each: value * scale.
// weight: [rows, K / 4] words; scales: [rows, K / 32] f16, two a word.
// needs: shared/weights/places, shared/weights/packed_values

const UNIT = 1.0;

@group(0) @binding(0) var<storage, read> weight: array<vec4u>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;

fn row_at(row: u32) -> Row {
  return Row(row * (params.shape.octets / 2u), row * (params.shape.octets / 4u), 1u);
}

fn columns_at(octet: u32) -> EightColumns {
  return EightColumns(octet, octet >> 1u, octet & 1u, octet >> 2u);
}

fn quants(row: Row, columns: EightColumns) -> mat2x4f {
  let words = &weight[row.start + columns.pair];
  let first = 2u * columns.odd;
  return mat2x4f(signed_bytes((*words)[first]), signed_bytes((*words)[first + 1u]));
}

fn sixteen(row: Row, low: EightColumns, high: EightColumns) -> Sixteen {
  let words = weight[row.start + low.pair];
  return Sixteen(
    mat2x4f(signed_bytes(words.x), signed_bytes(words.y)),
    mat2x4f(signed_bytes(words.z), signed_bytes(words.w)),
  );
}

fn affine(row: Row, columns: EightColumns) -> vec2f {
  let at = row.scale + columns.group;
  return vec2f(half_of(scales[at >> 1u], at), 0.0);
}
