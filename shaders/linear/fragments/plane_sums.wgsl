// What the two halves of a block add up to, with their scales and that of x.
// needs: linear/fragments/rows_by_planes, blocks = shared/weights/blocks_*

// facts: the scale of a token's block, and the sums of its halves.
fn scaled(row: Row, first: f32, second: f32, facts: vec4f) -> f32 {
  var sum = row.affine.x * first;
  if (HALVES == 2u) {
    sum += row.affine.z * second;
  }
  // BYTE_UNIT goes with the scale of x: a scale of the weight may be too small for it.
  sum *= BYTE_UNIT * facts.x;
  if (ADDS) {
    sum += row.affine.y * facts.y + row.affine.w * facts.z;
  }
  return sum;
}
