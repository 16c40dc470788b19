// The scales and addends of a row where they are computed one after the other.

static void row_affine(const Matrix *matrix, u32 row, u32 blocks, f32 *scales, f32 *addends) {
  for (u32 block = 0; block < blocks; block++) {
    for (u32 half = 0; half < HALVES; half++) {
      f32x2 affine = half_affine(matrix, row, block, half);
      scales[block * HALVES + half] = affine.x;
      if (ADDS) addends[block * HALVES + half] = affine.y;
    }
  }
}
