// 8-bit weights, one f32 scale a row: value * scale. weight: [rows, K / 4] words.
// needs: shared/weights/sixteen, shared/weights/packed_values

@group(0) @binding(0) var<storage, read> weight: array<u32>;
@group(0) @binding(1) var<storage, read> scales: array<f32>;

fn quants(row: u32, octet: u32) -> mat2x4f {
  let start = row * params.quads;
  let last = params.quads - 1u;  // x is zero past it
  return mat2x4f(
    signed_bytes(weight[start + 2u * octet]),
    signed_bytes(weight[start + min(2u * octet + 1u, last)]),
  );
}

fn sixteen(row: u32, pair: u32) -> Sixteen {
  let last = params.octets - 1u;  // x is zero past it
  return Sixteen(quants(row, 2u * pair), quants(row, min(2u * pair + 1u, last)));
}

fn affine(row: u32, octet: u32) -> vec2f {
  return vec2f(scales[row], 0.0);
}
