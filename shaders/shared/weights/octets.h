// Parts of the kinds of weights that are read by octets alone.

#pragma once

#include "shared/weights/weights.h"

// The columns of some octets that lie in a row.
INLINE u32 known_columns(const Matrix *matrix, u32 octet, u32 count) {
  return min_u32(8 * count, 4 * matrix->quads - 8 * octet);
}

INLINE void clear_columns(f32 *out, u32 known, u32 count) {
  for (u32 at = known; at < 8 * count; at++) out[at] = 0.0f;
}

INLINE f32x4 halves_to_floats(const u16 *halves) {
  u32x4 bits = (u32x4)wasm_u32x4_load16x4(halves);
  u32x4 magnitude = bits & 0x7fffu;
  f32x4 value = (f32x4)(magnitude << 13) * 0x1p112f;  // subnormals come out right, too
  u32x4 special = (u32x4)(magnitude >= 0x7c00u);  // infinities and NaN
  u32x4 whole = ((u32x4)value & ~special) | ((0x7f800000u | (magnitude & 0x3ffu) << 13) & special);
  return (f32x4)(whole | (bits & 0x8000u) << 16);
}
