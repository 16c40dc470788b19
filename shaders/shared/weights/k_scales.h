// The scales of Q4_K and Q5_K for 256 columns: see k_scales.wgsl.

#pragma once

#include "shared/weights/blocks.h"

// Returns (d * scale, -dmin * minimum) of one of the eight blocks.
INLINE f32x2 k_affine(const u8 *facts, u32 block) {
  u32 start = 8 * (block % 4), low = start + 4 * (block / 4), high = start + 2 * (block / 4);
  u32 top = load_word(facts + 12);
  u32 scale = (load_word(facts + 4) >> low & 15) | (top >> high & 3) << 4;
  u32 minimum = (load_word(facts + 8) >> low & 15) | (top >> (high + 4) & 3) << 4;
  return (f32x2){load_half(facts) * (f32)scale, -(load_half(facts + 2) * (f32)minimum)};
}
