// The scales of a row where they are f16, one after the other.

static void row_affine(const Matrix *matrix, u32 row, u32 blocks, f32 *scales, f32 *addends) {
  const u16 *halves = (const u16 *)matrix->scales + row * blocks;
  u32 at = 0;
  for (; at + 4 <= blocks; at += 4) store_f32x4(scales + at, halves_to_floats(halves + at));
  for (; at < blocks; at++) scales[at] = half_to_float(halves[at]);
}
