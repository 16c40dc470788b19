// 8-bit weights in groups of 32 with an f16 scale each: value * scale.
// weight: [rows, K / 4] words; scales: [rows, K / 32] halves, two a word.
// needs: shared/weights/sixteen, shared/weights/packed_values

@group(0) @binding(0) var<storage, read> weight: array<vec4u>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;

fn quants(row: u32, octet: u32) -> mat2x4f {
  let at = row * params.octets + octet;
  let words = &weight[at / 2u];
  let first = 2u * (at % 2u);
  return mat2x4f(signed_bytes((*words)[first]), signed_bytes((*words)[first + 1u]));
}

fn sixteen(row: u32, pair: u32) -> Sixteen {
  let words = weight[row * (params.octets / 2u) + pair];
  return Sixteen(
    mat2x4f(signed_bytes(words.x), signed_bytes(words.y)),
    mat2x4f(signed_bytes(words.z), signed_bytes(words.w)),
  );
}

fn affine(row: u32, octet: u32) -> vec2f {
  let at = row * (params.octets / 4u) + octet / 4u;
  return vec2f(half_of(scales[at / 2u], at), 0.0);
}
