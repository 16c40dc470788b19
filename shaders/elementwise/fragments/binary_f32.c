// How two elements combine in f32, each function in a loop of its own; an integer operand is converted first.

#include "elementwise/fragments/codes_of_two.wgsl.h"
#include "elementwise/fragments/elements.h"

INLINE f32x4 trunc4(f32x4 x) { return (f32x4)wasm_f32x4_trunc((v128_t)x); }

// The quotient in f64 never misses a whole number. A small negative one goes down to -1, even a / infinity.
INLINE f32 floor_divide(f32 a, f32 b) {
  f64 quotient = (f64)a / b;
  if (quotient == 0.0 && a != 0.0f && (a < 0.0f) != (b < 0.0f)) return -1.0f;
  return (f32)__builtin_floor(quotient);
}

static f32x4 floor_divide4(f32x4 a, f32x4 b) { return (f32x4)LANES_OF_TWO(floor_divide, a, b); }

static f32x4 each_pow4(f32x4 a, f32x4 b) { return (f32x4)LANES_OF_TWO(pow_f32, a, b); }

// Squares are what models ask for most.
INLINE f32x4 pow4(f32x4 a, f32x4 b) {
  return wasm_i32x4_all_true((v128_t)(b == 2.0f)) ? a * a : each_pow4(a, b);
}

#define EACH(code, expression) \
  case code: \
    FOUR_BY_FOUR { \
      f32x4 a = (f32x4)load_up_to_4(from_a + at, count - at); \
      f32x4 b = (f32x4)load_up_to_4(from_b + at, count - at); \
      STORE_EACH(expression); \
    } \
    break

static void combine_floats(u32 code, const u32 *from_a, const u32 *from_b, u32 *out, u32 count, f32 alpha) {
  switch (code) {
    EACH(ADD, a + alpha * b);
    EACH(MUL, a * b);
    EACH(DIV, a / b);
    EACH(FLOOR_DIV, floor_divide4(a, b));
    EACH(TRUNC_DIV, trunc4(a / b));
    EACH(MINIMUM, min4(a, b));
    EACH(MAXIMUM, max4(a, b));
    EACH(POW, pow4(a, b));
    EACH(EQ, (a == b) & 1);
    EACH(NE, (a != b) & 1);
    EACH(GE, (a >= b) & 1);
    EACH(GT, (a > b) & 1);
    EACH(LE, (a <= b) & 1);
    EACH(LT, (a < b) & 1);
    EACH(LOGICAL_AND, (a != 0.0f) & (b != 0.0f) & 1);
    EACH(LOGICAL_OR, ((a != 0.0f) | (b != 0.0f)) & 1);
  }
}

// The row itself, or its integers as floats in a row that has room for them.
INLINE const u32 *as_floats(u32 is_integer, const u32 *row, u32 *out, u32 count) {
  if (!is_integer) return row;
  FOUR_BY_FOUR STORE_EACH(wasm_f32x4_convert_i32x4((v128_t)load_up_to_4(row + at, count - at)));
  return out;
}

static void combine(const Call *call, const u32 *a, const u32 *b, u32 *out, u32 count, u32 alpha) {
  enum { CONVERTED = 512 };  // at a time
  u32 a_is_integer = CONSTANT(A_IS_INTEGER), b_is_integer = CONSTANT(B_IS_INTEGER);
  u32 step = a_is_integer || b_is_integer ? CONVERTED : count;
  u32 converted_a[CONVERTED], converted_b[CONVERTED];
  for (u32 at = 0; at < count; at += step) {
    u32 now = min_u32(step, count - at);
    const u32 *from_a = as_floats(a_is_integer, a + at, converted_a, now);
    const u32 *from_b = as_floats(b_is_integer, b + at, converted_b, now);
    combine_floats(CONSTANT(CODE), from_a, from_b, out + at, now, as_float(alpha));
  }
}

FRAGMENT(Operands, elementwise_fragments_binary_f32) = {combine};
