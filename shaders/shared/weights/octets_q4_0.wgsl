// 4-bit weights in groups of 32 with an f16 scale each: (nibble - 8) * scale.
// weight: [rows, K / 8] words; scales: [rows, K / 32] halves, two a word.
// needs: shared/weights/sixteen, shared/weights/packed_values

@group(0) @binding(0) var<storage, read> weight: array<vec2u>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;

fn quants(row: u32, octet: u32) -> mat2x4f {
  let at = row * params.octets + octet;
  return centred_nibbles(weight[at / 2u][at % 2u]);
}

fn sixteen(row: u32, pair: u32) -> Sixteen {
  let words = weight[row * (params.octets / 2u) + pair];
  return Sixteen(centred_nibbles(words.x), centred_nibbles(words.y));
}

fn affine(row: u32, octet: u32) -> vec2f {
  let at = row * (params.octets / 4u) + octet / 4u;
  return vec2f(half_of(scales[at / 2u], at), 0.0);
}
