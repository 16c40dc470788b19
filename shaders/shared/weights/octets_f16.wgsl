// Plain f16 weights of a linear, K / 4 vectors a row.
// needs: shared/weights/sixteen

@group(0) @binding(0) var<storage, read> weight: array<vec2u>;

fn widened(words: vec2u) -> vec4f {
  return vec4f(unpack2x16float(words.x), unpack2x16float(words.y));
}

fn quants(row: u32, octet: u32) -> mat2x4f {
  let start = row * params.quads;
  let last = params.quads - 1u;  // x is zero past it
  return mat2x4f(
    widened(weight[start + 2u * octet]),
    widened(weight[start + min(2u * octet + 1u, last)]),
  );
}

fn sixteen(row: u32, pair: u32) -> Sixteen {
  let last = params.octets - 1u;  // x is zero past it
  return Sixteen(quants(row, 2u * pair), quants(row, min(2u * pair + 1u, last)));
}

fn affine(row: u32, octet: u32) -> vec2f {
  return vec2f(1.0, 0.0);
}
