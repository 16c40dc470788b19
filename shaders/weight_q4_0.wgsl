// 4-bit weights in groups of 32 with an f16 scale each: (nibble - 8) * scale.
// weight: [rows, K / 8] words; scales: [rows, K / 32] halves, two a word.

@group(0) @binding(3) var<storage, read> weight: array<u32>;
@group(0) @binding(4) var<storage, read> scales: array<u32>;

fn quants(row: u32, octet: u32) -> mat2x4f {
  return centred_nibbles(weight[row * params.octets + octet]);
}

fn affine(row: u32, octet: u32) -> vec2f {
  let at = row * (params.octets / 4u) + octet / 4u;
  return vec2f(half_of(scales[at / 2u], at), 0.0);
}
