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

// Four bytes as floats.
INLINE f32x4 byte_floats(u32 bytes) {
  v128_t wide = wasm_u16x8_extend_low_u8x16(wasm_i32x4_splat((i32)bytes));
  return (f32x4)wasm_f32x4_convert_i32x4(wasm_u32x4_extend_low_u16x8(wide));
}

// The same of all eight blocks.
INLINE void k_affines(const u8 *facts, f32 *scales, f32 *addends) {
  const u32 low = 0x0f0f0f0f, top = 0x30303030;
  u32 scale = load_word(facts + 4), minimum = load_word(facts + 8), upper = load_word(facts + 12);
  f32 d = load_half(facts), dmin = -load_half(facts + 2);
  store_f32x4(scales, d * byte_floats((scale & low) | (upper << 4 & top)));
  store_f32x4(scales + 4, d * byte_floats((scale >> 4 & low) | (upper << 2 & top)));
  store_f32x4(addends, dmin * byte_floats((minimum & low) | (upper & top)));
  store_f32x4(addends + 4, dmin * byte_floats((minimum >> 4 & low) | (upper >> 2 & top)));
}
