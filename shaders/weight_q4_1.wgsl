// 4-bit weights in groups of 32 with an f16 scale and minimum each: nibble * scale + minimum.
// weight: [rows, K / 8] words; scales: [rows, K / 32] words of (scale, minimum).

@group(0) @binding(3) var<storage, read> weight: array<u32>;
@group(0) @binding(4) var<storage, read> scales: array<u32>;

fn quants(row: u32, octet: u32) -> mat2x4f {
  return unsigned_nibbles(weight[row * params.octets + octet]);
}

fn affine(row: u32, octet: u32) -> vec2f {
  return unpack2x16float(scales[row * (params.octets / 4u) + octet / 4u]);
}
