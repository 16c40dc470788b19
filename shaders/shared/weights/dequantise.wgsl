// A dequantised weight. A file octets_* says how the weight is stored: `quants(row, columns)` returns eight
// stored columns, `sixteen(row, low, high)` those of two adjacent octets, and `affine(row, columns)` their
// (scale, minimum). UNIT is a power of two; the weight is
//   quant * UNIT * scale + minimum
// needs: shared/weights/places, weight = shared/weights/octets_*

fn dequantised(row: Row, columns: EightColumns) -> mat2x4f {
  let values = quants(row, columns);
  let scale = affine(row, columns);
  return mat2x4f(
    UNIT * values[0] * scale.x + scale.y,
    UNIT * values[1] * scale.x + scale.y,
  );
}

// The weight before it is multiplied by UNIT, which sums of products can be instead: GPUs may flush f32 below
// 2^-126 to zero, and some weights are that small.
fn raised(row: Row, columns: EightColumns) -> mat2x4f {
  let values = quants(row, columns);
  let scale = affine(row, columns);
  let least = scale.y * (1.0 / UNIT);
  return mat2x4f(values[0] * scale.x + least, values[1] * scale.x + least);
}
