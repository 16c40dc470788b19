// 8-bit weights in groups of 32 with an f16 scale each: value * scale.
// weight: [rows, K / 4] words; scales: [rows, K / 32] halves, two a word.

@group(0) @binding(3) var<storage, read> weight: array<u32>;
@group(0) @binding(4) var<storage, read> scales: array<u32>;

fn signed_bytes(word: u32) -> vec4f {
  return vec4f((vec4i(bitcast<i32>(word)) << vec4u(24u, 16u, 8u, 0u)) >> vec4u(24u));
}

fn quants(row: u32, octet: u32) -> mat2x4f {
  let at = 2u * (row * params.octets + octet);
  return mat2x4f(signed_bytes(weight[at]), signed_bytes(weight[at + 1u]));
}

fn affine(row: u32, octet: u32) -> vec2f {
  let at = row * (params.octets / 4u) + octet / 4u;
  return vec2f(half_of(scales[at / 2u], at), 0.0);
}
