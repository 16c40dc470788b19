// Numbers and vectors of four lanes, with WGSL's names where C has none.

#pragma once

#include <wasm_simd128.h>

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;
typedef float f32;
typedef double f64;

typedef f32 f32x4 __attribute__((ext_vector_type(4)));
typedef i32 i32x4 __attribute__((ext_vector_type(4)));
typedef u32 u32x4 __attribute__((ext_vector_type(4)));
typedef f32 f32x2 __attribute__((ext_vector_type(2)));
typedef u32 u32x2 __attribute__((ext_vector_type(2)));
typedef i16 i16x8 __attribute__((ext_vector_type(8)));
typedef u16 u16x8 __attribute__((ext_vector_type(8)));
typedef i8 i8x16 __attribute__((ext_vector_type(16)));
typedef u8 u8x16 __attribute__((ext_vector_type(16)));

#define INLINE static inline __attribute__((always_inline))
#define UNROLLED _Pragma("clang loop unroll(full)")  // so that arrays become registers, and shifts constant

INLINE f32 as_float(u32 bits) { return __builtin_bit_cast(f32, bits); }
INLINE u32 as_bits(f32 value) { return __builtin_bit_cast(u32, value); }

INLINE u32 min_u32(u32 a, u32 b) { return a < b ? a : b; }
INLINE u32 max_u32(u32 a, u32 b) { return a > b ? a : b; }
INLINE f32 min_f32(f32 a, f32 b) { return a < b ? a : b; }
INLINE f32 max_f32(f32 a, f32 b) { return a > b ? a : b; }
INLINE i32 clamp_i32(i32 value, i32 low, i32 high) { return value < low ? low : value > high ? high : value; }
INLINE u32 ceil_div(u32 a, u32 b) { return (a + b - 1) / b; }

// Loads that need no alignment.
INLINE f32x4 load_f32x4(const f32 *at) { return (f32x4)wasm_v128_load(at); }
INLINE void store_f32x4(f32 *at, f32x4 values) { wasm_v128_store(at, (v128_t)values); }
INLINE f32x4 splat(f32 value) { return (f32x4)wasm_f32x4_splat(value); }

// Copy words: in place for what is short, where a call would take longer than the copy.
INLINE void copy_words(void *to, const void *from, u32 count) {
  if (count >= 256) {
    __builtin_memcpy(to, from, 4 * count);
    return;
  }
  u32 at = 0;
  for (; at + 4 <= count; at += 4) wasm_v128_store((u32 *)to + at, wasm_v128_load((const u32 *)from + at));
  for (; at < count; at++) ((u32 *)to)[at] = ((const u32 *)from)[at];
}

// a * b + c: in one rounding where the machine has it and the relaxed build is used.
INLINE f32x4 fma4(f32x4 a, f32x4 b, f32x4 c) {
#ifdef __wasm_relaxed_simd__
  return (f32x4)wasm_f32x4_relaxed_madd((v128_t)a, (v128_t)b, (v128_t)c);
#else
  return a * b + c;
#endif
}

INLINE f32 sum_of(f32x4 v) { return (v.x + v.y) + (v.z + v.w); }
INLINE f32 max_of(f32x4 v) { return max_f32(max_f32(v.x, v.y), max_f32(v.z, v.w)); }
INLINE i32x4 dot_i16(i16x8 a, i16x8 b) { return (i32x4)wasm_i32x4_dot_i16x8((v128_t)a, (v128_t)b); }

// The f32 that 16 bits of an f16 stand for, exactly, with infinities and NaN.
INLINE f32 half_to_float(u16 half) {
  u32 magnitude = half & 0x7fffu;
  f32 value = as_float(magnitude << 13) * 0x1p112f;  // subnormals come out right, too
  if (magnitude >= 0x7c00u) value = as_float(0x7f800000u | (magnitude & 0x3ffu) << 13);
  return as_float(as_bits(value) | (half & 0x8000u) << 16);
}

// The same of four, in the lower halves of words.
INLINE f32x4 floats_of_halves(u32x4 bits) {
  u32x4 magnitude = bits & 0x7fffu;
  f32x4 value = (f32x4)(magnitude << 13) * 0x1p112f;  // subnormals come out right, too
  u32x4 special = (u32x4)(magnitude >= 0x7c00u);  // infinities and NaN
  u32x4 whole = ((u32x4)value & ~special) | ((0x7f800000u | (magnitude & 0x3ffu) << 13) & special);
  return (f32x4)(whole | (bits & 0x8000u) << 16);
}

INLINE f32x4 halves_to_floats(const u16 *halves) { return floats_of_halves((u32x4)wasm_u32x4_load16x4(halves)); }

// Rounds to the nearest half, of two to the even one. What is too large becomes the largest; NaN stays NaN.
INLINE u16 float_to_half(f32 value) {
  u32 magnitude = as_bits(value) & 0x7fffffffu, sign = as_bits(value) >> 16 & 0x8000u;
  if (magnitude > 0x7f800000u) return (u16)(sign | 0x7e00u);
  magnitude = min_u32(magnitude, 0x477fe000u);  // 65504
  if (magnitude < 0x38800000u) {  // below the smallest normal half: 1/2 has the steps of what is below it
    return (u16)(sign | (as_bits(as_float(magnitude) + 0.5f) - as_bits(0.5f)));
  }
  return (u16)(sign | ((magnitude + 0xfffu + (magnitude >> 13 & 1) - 0x38000000u) >> 13));
}
