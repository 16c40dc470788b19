// The rotation of a head's pairs of dims, as rotary.wgsl and qkv_store.wgsl describe it.

#pragma once

#include "simd.h"

// How pairs lie in a head, and a pair's columns in the tables.
typedef struct {
  u32 pair_step;  // 2: pairs lie side by side; 1: half the rotated dims apart
  u32 pair_gap;
  u32 column_gap;  // from the table's column of a pair's first dim to that of its second
} Pairs;

// Rotates four pairs: firsts and seconds are replaced.
INLINE void turn_four(f32x4 *firsts, f32x4 *seconds, const f32 *cosines, const f32 *sines, u32 column_gap) {
  f32x4 x = *firsts, y = *seconds;
  *firsts = x * load_f32x4(cosines) - y * load_f32x4(sines);
  *seconds = y * load_f32x4(cosines + column_gap) + x * load_f32x4(sines + column_gap);
}

// Rotates the pairs first to last (exclusive) of a head; x and out: [width]; cosines, sines: the token's rows.
INLINE void turn_pairs(Pairs pairs, u32 first, u32 last, const f32 *x, f32 *out, const f32 *cosines, const f32 *sines) {
  u32 pair = first;
  for (; pair + 4 <= last; pair += 4) {
    u32 at = pair * pairs.pair_step;
    if (pairs.pair_step == 1) {
      f32x4 firsts = load_f32x4(x + at), seconds = load_f32x4(x + at + pairs.pair_gap);
      turn_four(&firsts, &seconds, cosines + pair, sines + pair, pairs.column_gap);
      store_f32x4(out + at, firsts);
      store_f32x4(out + at + pairs.pair_gap, seconds);
    } else {
      f32x4 left = load_f32x4(x + at), right = load_f32x4(x + at + 4);
      f32x4 firsts = __builtin_shufflevector(left, right, 0, 2, 4, 6);
      f32x4 seconds = __builtin_shufflevector(left, right, 1, 3, 5, 7);
      turn_four(&firsts, &seconds, cosines + pair, sines + pair, pairs.column_gap);
      store_f32x4(out + at, __builtin_shufflevector(firsts, seconds, 0, 4, 1, 5));
      store_f32x4(out + at + 4, __builtin_shufflevector(firsts, seconds, 2, 6, 3, 7));
    }
  }
  for (; pair < last; pair++) {
    u32 at = pair * pairs.pair_step, second = pair + pairs.column_gap;
    f32 x_first = x[at], x_second = x[at + pairs.pair_gap];
    out[at] = x_first * cosines[pair] - x_second * sines[pair];
    out[at + pairs.pair_gap] = x_second * cosines[second] + x_first * sines[second];
  }
}
