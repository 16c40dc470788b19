// 4-bit weights in groups of 32 with an f16 scale and minimum each: nibble * scale + minimum.
// weight: [rows, K / 8] words; scales: [rows, K / 32] words of (scale, minimum).
// needs: shared/weights/sixteen, shared/weights/packed_values

@group(0) @binding(0) var<storage, read> weight: array<vec2u>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;

fn quants(row: u32, octet: u32) -> mat2x4f {
  let at = row * params.octets + octet;
  return unsigned_nibbles(weight[at / 2u][at % 2u]);
}

fn sixteen(row: u32, pair: u32) -> Sixteen {
  let words = weight[row * (params.octets / 2u) + pair];
  return Sixteen(unsigned_nibbles(words.x), unsigned_nibbles(words.y));
}

fn affine(row: u32, octet: u32) -> vec2f {
  return unpack2x16float(scales[row * (params.octets / 4u) + octet / 4u]);
}
