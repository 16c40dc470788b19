// Loops over dense rows of 32-bit elements, four at a time, and what their fragments take.

#pragma once

#include "kernel.h"
#include "maths.h"

// Functions of one element, by CODE.
typedef struct {
  void (*apply)(u32 code, const u32 *x, u32 *out, u32 count, u32 first, u32 second);
} Elements;

// Functions of two elements, by CODE and the other constants of the call.
typedef struct {
  void (*combine)(const Call *call, const u32 *a, const u32 *b, u32 *out, u32 count, u32 alpha);
} Operands;

INLINE u32x4 load_u32x4(const u32 *at) { return (u32x4)wasm_v128_load(at); }
INLINE void store_u32x4(u32 *at, u32x4 values) { wasm_v128_store(at, (v128_t)values); }

INLINE u32x4 load_up_to_4(const u32 *at, u32 count) {
  if (count >= 4) return load_u32x4(at);
  u32x4 values = 0;
  for (u32 lane = 0; lane < count; lane++) values[lane] = at[lane];
  return values;
}

INLINE void store_up_to_4(u32 *at, u32x4 values, u32 count) {
  if (count >= 4) {
    store_u32x4(at, values);
  } else {
    for (u32 lane = 0; lane < count; lane++) at[lane] = values[lane];
  }
}

// out = expression, over rows of `count`; the expression is a vector of any type and reads the vectors before it.
#define STORE_EACH(expression) store_up_to_4(out + at, (u32x4)(expression), count - at)
#define FOUR_BY_FOUR for (u32 at = 0; at < count; at += 4)

// The lanes of a function of single numbers.
#define LANES(function, x) {function((x).x), function((x).y), function((x).z), function((x).w)}
#define LANES_OF_TWO(function, a, b) \
  {function((a).x, (b).x), function((a).y, (b).y), function((a).z, (b).z), function((a).w, (b).w)}
