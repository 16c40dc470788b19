// The scales of Q4_K and Q5_K for 256 columns: d and dmin as f16, then four bits of each of eight scales, four
// of each of eight minima, and the two bits above those. Byte k of a word belongs to the blocks k and k + 4.
// needs: nothing

// Returns (d * scale, -dmin * minimum) of one of the eight blocks.
fn k_affine(facts: vec4u, block: u32) -> vec2f {
  let start = 8u * (block % 4u);
  let low = start + 4u * (block / 4u);
  let high = start + 2u * (block / 4u);
  let scale = ((facts.y >> low) & 15u) | (((facts.w >> high) & 3u) << 4u);
  let minimum = ((facts.z >> low) & 15u) | (((facts.w >> (high + 4u)) & 3u) << 4u);
  let ends = unpack2x16float(facts.x);
  return vec2f(ends.x * f32(scale), -(ends.y * f32(minimum)));
}
