// Rows of floats, four columns at a time; the last vector may hold fewer. Hot loops leave that one out, and compute
// it after them: a constant number of lanes costs no branch.

#pragma once

#include "maths.h"

// Columns that a vector from column `at` on holds.
INLINE u32 lanes_at(u32 at, u32 width) { return min_u32(width - at, 4); }

INLINE f32x4 load_lanes(const f32 *at, u32 lanes, f32 others) {
  if (lanes == 4) return load_f32x4(at);
  f32x4 values = splat(others);
  for (u32 lane = 0; lane < lanes; lane++) values[lane] = at[lane];
  return values;
}

INLINE void store_lanes(f32 *at, u32 lanes, f32x4 values) {
  if (lanes == 4) {
    store_f32x4(at, values);
    return;
  }
  for (u32 lane = 0; lane < lanes; lane++) at[lane] = values[lane];
}

INLINE f32 sum_of_row(const f32 *x, u32 width) {
  f32x4 sums[4] = {};
  u32 at = 0;
  for (; at + 16 <= width; at += 16) {
    for (u32 part = 0; part < 4; part++) sums[part] += load_f32x4(x + at + 4 * part);
  }
  f32 sum = sum_of((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (; at < width; at++) sum += x[at];
  return sum;
}

INLINE f32 sum_of_squares(const f32 *x, u32 width) {
  f32x4 sums[4] = {};
  u32 at = 0;
  for (; at + 16 <= width; at += 16) {
    for (u32 part = 0; part < 4; part++) {
      f32x4 values = load_f32x4(x + at + 4 * part);
      sums[part] = fma4(values, values, sums[part]);
    }
  }
  f32 sum = sum_of((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (; at < width; at++) sum += x[at] * x[at];
  return sum;
}

INLINE f32 largest_of_row(const f32 *x, u32 width) {
  f32x4 largest[4];
  for (u32 part = 0; part < 4; part++) largest[part] = splat(x[0]);
  u32 at = 0;
  for (; at + 16 <= width; at += 16) {
    for (u32 part = 0; part < 4; part++) largest[part] = max4(largest[part], load_f32x4(x + at + 4 * part));
  }
  f32 result = max_of(max4(max4(largest[0], largest[1]), max4(largest[2], largest[3])));
  for (; at < width; at++) result = max_f32(result, x[at]);
  return result;
}
