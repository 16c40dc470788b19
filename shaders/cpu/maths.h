// Functions of f32 without a C library: vectors of four where they are hot, single numbers elsewhere.
//
// All take and give NaN, infinities and subnormals as C's functions do, and are off by at most 2.5 units
// in the last place where no comment says otherwise. A single number is computed like the lane of a
// vector, so that a result does not depend on where in a row it stands.

#pragma once

#include "simd.h"

// A lane of the mask is all ones or all zeros.
INLINE f32x4 select4(i32x4 mask, f32x4 yes, f32x4 no) {
  return (f32x4)wasm_v128_bitselect((v128_t)yes, (v128_t)no, (v128_t)mask);
}

INLINE f32x4 abs4(f32x4 x) { return (f32x4)wasm_f32x4_abs((v128_t)x); }
INLINE f32x4 sqrt4(f32x4 x) { return (f32x4)wasm_f32x4_sqrt((v128_t)x); }
INLINE f32x4 round4(f32x4 x) { return (f32x4)wasm_f32x4_nearest((v128_t)x); }  // halves to even

// The smaller and the larger, NaN if one is NaN.
INLINE f32x4 min4(f32x4 a, f32x4 b) { return (f32x4)wasm_f32x4_min((v128_t)a, (v128_t)b); }
INLINE f32x4 max4(f32x4 a, f32x4 b) { return (f32x4)wasm_f32x4_max((v128_t)a, (v128_t)b); }

// x within bounds that are numbers: one instruction each, and NaN stays NaN.
INLINE f32x4 at_most4(f32x4 x, f32 bound) { return (f32x4)wasm_f32x4_pmin((v128_t)x, (v128_t)splat(bound)); }
INLINE f32x4 at_least4(f32x4 x, f32 bound) { return (f32x4)wasm_f32x4_pmax((v128_t)x, (v128_t)splat(bound)); }

// 2^n for whole n from -126 to 127.
INLINE f32x4 power_of_two4(i32x4 n) { return (f32x4)((n + 127) << 23); }

// exp(x) = 2^n exp(r) with r in [-ln 2 / 2, ln 2 / 2]. ln 2 comes in two parts, of which the product of the
// first and n is exact; 2^n in two factors, so that subnormal results are rounded once.
INLINE f32x4 exp4(f32x4 x) {
  const f32 whole = 0x1.8p23f;  // a sum with it is rounded to a whole number, in its lowest bits
  f32x4 within = at_least4(at_most4(x, 89.0f), -105.0f);
  f32x4 shifted = within * 1.44269504f + whole;
  f32x4 n = shifted - whole;
  f32x4 r = fma4(n, splat(-0.693145752f), within);
  r = fma4(n, splat(-1.42860677e-6f), r);
  f32x4 sum = splat(0.0013814596f);
  sum = fma4(sum, r, splat(0.0083687175f));
  sum = fma4(sum, r, splat(0.04166839f));
  sum = fma4(sum, r, splat(0.16666521f));
  sum = fma4(sum, r, splat(0.49999994f));
  sum = fma4(sum, r * r, r) + 1.0f;
  i32x4 power = (i32x4)shifted - (i32x4)splat(whole);
  i32x4 half = power >> 1;
  return sum * power_of_two4(half) * power_of_two4(power - half);
}

// 1 / (1 + exp(-x)), by an exponential that cannot overflow.
INLINE f32x4 sigmoid4(f32x4 x) {
  f32x4 small = exp4(-abs4(x));
  return select4(x >= 0.0f, splat(1.0f), small) / (1.0f + small);
}

// Below -87, where sigmoid is subnormal, it is as exact as that is.
INLINE f32x4 silu4(f32x4 x) { return x * sigmoid4(x); }

// A polynomial keeps the precision of small x.
INLINE f32x4 tanh4(f32x4 x) {
  f32x4 square = x * x;
  f32x4 sum = splat(-0.0057049785f);
  sum = fma4(sum, square, splat(0.020639079f));
  sum = fma4(sum, square, splat(-0.05373971f));
  sum = fma4(sum, square, splat(0.13331442f));
  sum = fma4(sum, square, splat(-0.3333328f));
  f32x4 near = fma4(x * square, sum, x);
  f32x4 size = abs4(x);
  f32x4 far = 1.0f - 2.0f / (exp4(size + size) + 1.0f);
  f32x4 signed_far = select4((i32x4)splat(-0.0f), x, far);
  return select4(size < 0.625f, near, signed_far);
}

// erfc(z) exp(z²) for z >= 0: a polynomial in t = (z - 2) / (z + 2), over 1 + 2 z. One division serves both.
INLINE f32x4 scaled_erfc4(f32x4 z) {
  f32x4 slope = 1.0f + 2.0f * z;
  f32x4 inverse = 1.0f / ((z + 2.0f) * slope);
  f32x4 t = (z - 2.0f) * slope * inverse;
  f32x4 sum = splat(-0.0003994496f);
  sum = fma4(sum, t, splat(-0.0012280024f));
  sum = fma4(sum, t, splat(0.0013133099f));
  sum = fma4(sum, t, splat(0.008630098f));
  sum = fma4(sum, t, splat(-0.008060143f));
  sum = fma4(sum, t, splat(-0.054203883f));
  sum = fma4(sum, t, splat(0.16405542f));
  sum = fma4(sum, t, splat(-0.16603146f));
  sum = fma4(sum, t, splat(-0.09276398f));
  sum = fma4(sum, t, splat(1.2769784f));
  return sum * (z + 2.0f) * inverse;
}

// x Φ(x), with Φ(-|x|) = exp(-x²/2) times a scaled erfc, halved; off by up to 6 units. x² is split, as the
// rounding error of a large exponent is many units of the result: the square of the upper 12 bits of x is exact.
INLINE f32x4 gelu4(f32x4 x) {
  f32x4 size = at_most4(abs4(x), 20.0f);  // from 15 on the tail is 0
  f32x4 upper = (f32x4)((i32x4)size & (i32x4)~0xfff);
  f32x4 rest = -0.5f * (size - upper) * (size + upper);  // small: exp(rest) is four terms of its series
  f32x4 correction = 1.0f + rest * (1.0f + rest * (0.5f + rest * 0.16666667f));
  f32x4 tail = 0.5f * scaled_erfc4(size * 0.70710678f) * correction * exp4(-0.5f * upper * upper);
  return x * select4(x >= 0.0f, 1.0f - tail, tail);
}

// The approximation of gelu by tanh: 0.5 (1 + tanh u) is sigmoid(2u), whose tail is as exact as the rounded u.
INLINE f32x4 gelu_tanh4(f32x4 x) { return x * sigmoid4(1.5957691f * (x + 0.044715f * x * x * x)); }

INLINE f32 exp_f32(f32 x) { return exp4(splat(x)).x; }
INLINE f32 sigmoid_f32(f32 x) { return sigmoid4(splat(x)).x; }
INLINE f32 round_f32(f32 x) { return __builtin_rintf(x); }  // halves to even
INLINE f32 rsqrt_f32(f32 x) { return 1.0f / __builtin_sqrtf(x); }

// The rest computes in f64, whose errors vanish when the result is rounded.

// ln x of a number whose mantissa is m and whose exponent is e: 2 artanh((m - 1) / (m + 1)) + e ln 2.
INLINE f64 log_f64(f64 x) {  // x > 0, normal
  u64 bits = __builtin_bit_cast(u64, x);
  u64 above = bits - 0x3fe6a09e667f3bcdull;  // counts from the root of 1/2
  f64 e = (f64)((i64)above >> 52);
  f64 m = __builtin_bit_cast(f64, bits - (above & 0xfff0000000000000ull));
  f64 s = (m - 1.0) / (m + 1.0), square = s * s;
  f64 sum = 1.0 / 17.0;
  sum = sum * square + 1.0 / 15.0;
  sum = sum * square + 1.0 / 13.0;
  sum = sum * square + 1.0 / 11.0;
  sum = sum * square + 1.0 / 9.0;
  sum = sum * square + 1.0 / 7.0;
  sum = sum * square + 1.0 / 5.0;
  sum = sum * square + 1.0 / 3.0;
  return 2.0 * (s + s * square * sum) + e * 0.69314718055994531;
}

INLINE f64 exp_f64(f64 x) {  // |x| <= 700
  f64 n = __builtin_rint(x * 1.4426950408889634);
  f64 r = x - n * 0.69314718055994531;
  f64 sum = 1.0 / 39916800.0;
  sum = sum * r + 1.0 / 3628800.0;
  sum = sum * r + 1.0 / 362880.0;
  sum = sum * r + 1.0 / 40320.0;
  sum = sum * r + 1.0 / 5040.0;
  sum = sum * r + 1.0 / 720.0;
  sum = sum * r + 1.0 / 120.0;
  sum = sum * r + 1.0 / 24.0;
  sum = sum * r + 1.0 / 6.0;
  sum = sum * r + 0.5;
  sum = sum * r + 1.0;
  sum = sum * r + 1.0;
  return sum * __builtin_bit_cast(f64, (u64)((i64)n + 1023) << 52);
}

static const u32 INFINITY_BITS = 0x7f800000u, NAN_BITS = 0x7fc00000u;

INLINE f32 log_f32(f32 x) {
  if (x == 0.0f) return as_float(INFINITY_BITS | 0x80000000u);
  if (x < 0.0f) return as_float(NAN_BITS);
  if (!(as_bits(x) < INFINITY_BITS)) return x;  // infinity, NaN
  return (f32)log_f64(x);
}

// base^exponent, with all cases of C's pow.
INLINE f32 pow_f32(f32 base, f32 exponent) {
  f32 size = __builtin_fabsf(exponent);
  int is_whole = exponent == __builtin_truncf(exponent);
  if (is_whole && size <= 1024.0f) {
    f64 product = 1.0, square = base;
    for (u32 left = (u32)size; left; left >>= 1) {
      if (left & 1) product *= square;
      square *= square;
    }
    return (f32)(exponent < 0.0f ? 1.0 / product : product);
  }
  if (base == 1.0f) return 1.0f;
  if (base != base || exponent != exponent) return as_float(NAN_BITS);
  f32 from = __builtin_fabsf(base);
  if (from == 1.0f && is_whole) return base < 0.0f && size < 0x1p24f && ((u32)size & 1) ? -1.0f : 1.0f;
  if (base < 0.0f && !is_whole && as_bits(from) < INFINITY_BITS) return as_float(NAN_BITS);
  int is_odd = is_whole && size < 0x1p24f && ((u32)size & 1);
  f32 infinity = as_float(INFINITY_BITS);
  f32 magnitude;
  if (from == 0.0f || from == infinity || size == infinity) {
    magnitude = (from > 1.0f) == (exponent > 0.0f) ? infinity : 0.0f;
  } else {
    f64 power = (f64)exponent * log_f64(from);
    magnitude = power > 100.0 ? infinity : power < -110.0 ? 0.0f : (f32)exp_f64(power);
  }
  return is_odd && as_bits(base) >> 31 ? -magnitude : magnitude;
}

// An angle in quarter turns: their number, and what is left, in [-π/4, π/4].
typedef struct {
  u32 quadrant;
  f64 angle;
} Turned;

// A large angle, by the product of its 24 bits with those bits of 2/π that matter.
static inline Turned turn_back_far(f32 x) {
  static const u32 two_over_pi[] = {0, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041};
  u32 bits = as_bits(x);
  u32 mantissa = (bits << 8) | 0x80000000u;
  u32 e = (bits >> 23 & 0xff) - 128;  // x = mantissa 2^(e - 30)
  const u32 *words = two_over_pi + e / 32;
  u32 shift = e % 32;
  u32 window[3];
  for (u32 at = 0; at < 3; at++) window[at] = (u32)(((u64)words[at] << 32 | words[at + 1]) << shift >> 32);
  u64 product = ((u64)mantissa * window[0] << 32) + (u64)mantissa * window[1] + ((u64)mantissa * window[2] >> 32);
  u32 quadrant = (u32)((product + (1ull << 61)) >> 62);
  f64 angle = (f64)(i64)(product - ((u64)quadrant << 62)) * 0x1.921fb54442d18p-62;
  if (bits >> 31) return (Turned){-quadrant, -angle};
  return (Turned){quadrant, angle};
}

// sin(x + shift π/2).
INLINE f32 sine_f32(f32 x, u32 shift) {
  if ((as_bits(x) & 0x7fffffffu) >= INFINITY_BITS) return as_float(NAN_BITS);
  Turned turned;
  if (__builtin_fabsf(x) < 0x1p20f) {  // the product of a quadrant and the first part of π/2 is exact
    f64 quadrants = __builtin_rint((f64)x * 0.63661977236758134);
    f64 angle = ((f64)x - quadrants * 0x1.921fb544p+0) - quadrants * 0x1.0b4611a626331p-34;
    turned = (Turned){(u32)(i32)quadrants, angle};
  } else {
    turned = turn_back_far(x);
  }
  f64 angle = turned.angle, square = angle * angle;
  f64 value;
  if ((turned.quadrant + shift) & 1) {  // cosine
    value = 1.0 + square * (-1.0 / 2.0 + square * (1.0 / 24.0 + square * (-1.0 / 720.0 + square * (
      1.0 / 40320.0 + square * (-1.0 / 3628800.0 + square * (1.0 / 479001600.0))))));
  } else {
    value = angle * (1.0 + square * (-1.0 / 6.0 + square * (1.0 / 120.0 + square * (-1.0 / 5040.0 + square * (
      1.0 / 362880.0 + square * (-1.0 / 39916800.0 + square * (1.0 / 6227020800.0)))))));
  }
  return (f32)((turned.quadrant + shift) & 2 ? -value : value);
}

INLINE f32 sin_f32(f32 x) { return sine_f32(x, 0); }
INLINE f32 cos_f32(f32 x) { return sine_f32(x, 1); }
