// The scale that the columns of a block of x share: the largest of them becomes TOP.
// needs: @TOP

fn top_of(octet: mat2x4f) -> f32 {
  let tops = max(abs(octet[0]), abs(octet[1]));
  return max(max(tops.x, tops.y), max(tops.z, tops.w));
}

// NaN and infinity cannot be scaled: the block's scale passes them on.
fn scale_of(top: f32, sum: f32) -> f32 {
  let is_finite = (bitcast<u32>(sum) & 0x7fffffffu) < 0x7f800000u;
  return select(sum, top * (1.0 / TOP), is_finite);
}
