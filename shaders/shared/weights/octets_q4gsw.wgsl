// 4-bit weights, one f32 scale a group: (nibble - 8) * scale. Rows are whole words of eight values.
// needs: shared/weights/sixteen, shared/weights/packed_values, @scale_place

// Whether the even column of each byte is in its high nibble.
override HIGH_FIRST: bool = false;

@group(0) @binding(0) var<storage, read> weight: array<u32>;
@group(0) @binding(1) var<storage, read> scales: array<f32>;

fn quants(row: u32, octet: u32) -> mat2x4f {
  var word = weight[row * params.octets + octet];
  if (HIGH_FIRST) {
    word = ((word & 0x0f0f0f0fu) << 4u) | ((word >> 4u) & 0x0f0f0f0fu);
  }
  return centred_nibbles(word);
}

fn sixteen(row: u32, pair: u32) -> Sixteen {
  let last = params.octets - 1u;  // x is zero past it
  return Sixteen(quants(row, 2u * pair), quants(row, min(2u * pair + 1u, last)));
}

fn affine(row: u32, octet: u32) -> vec2f {
  return vec2f(scales[scale_place(row, octet / params.octets_per_group)], 0.0);
}
