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
