// 4-bit weights, one f32 scale a row: (nibble - 8) * scale. The even column of a byte is in its high
// nibble. Rows are K / 2 bytes: with K % 8 == 4 every other one begins in the middle of a word.
// needs: shared/weights/sixteen, shared/weights/packed_values

@group(0) @binding(0) var<storage, read> weight: array<u32>;
@group(0) @binding(1) var<storage, read> scales: array<f32>;

fn quants(row: u32, octet: u32) -> mat2x4f {
  let quad = row * params.quads + 2u * octet;
  var word = weight[quad / 2u];
  if (quad % 2u == 1u) {
    let last = arrayLength(&weight) - 1u;  // x is zero past it
    word = (word >> 16u) | (weight[min(quad / 2u + 1u, last)] << 16u);
  }
  return centred_nibbles(((word & 0x0f0f0f0fu) << 4u) | ((word >> 4u) & 0x0f0f0f0fu));
}

fn sixteen(row: u32, pair: u32) -> Sixteen {
  let last = params.octets - 1u;  // x is zero past it
  return Sixteen(quants(row, 2u * pair), quants(row, min(2u * pair + 1u, last)));
}

fn affine(row: u32, octet: u32) -> vec2f {
  return vec2f(scales[row], 0.0);
}
