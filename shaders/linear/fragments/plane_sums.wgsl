// What a block's integer products add up to, with the scales of the weight and of x.
// needs: linear/fragments/rows_by_planes, blocks = shared/weights/blocks_*

// The products of a block, or of both halves where these have scales of their own. facts: the scale of a
// token's block, and the sums of its halves.
fn scaled(row: Row, first: f32, second: f32, facts: vec4f) -> f32 {
  let scale = BYTE_UNIT * facts.x;  // not with the weight's scale, which may be too small for the unit
  var sum = row.affine.x * (scale * first);
  if (HALVES == 2u) {
    sum += row.affine.z * (scale * second);
  }
  if (ADDS && HALVES == 2u) {
    sum += row.affine.y * facts.y + row.affine.w * facts.z;
  } else if (ADDS) {
    sum += row.affine.y * (facts.y + facts.z);
  }
  return sum;
}
