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

// The f32 of four elements; `is_integer` is a mask.
INLINE f32x4 as_f32x4(u32x4 bits, i32x4 is_integer) {
  return select4(is_integer, (f32x4)wasm_f32x4_convert_i32x4((v128_t)bits), (f32x4)bits);
}

#define EACH(code, expression) \
  case code: \
    FOUR_BY_FOUR { \
      f32x4 a = as_f32x4(load_up_to_4(from_a + at, count - at), a_is_integer); \
      f32x4 b = as_f32x4(load_up_to_4(from_b + at, count - at), b_is_integer); \
      STORE_EACH(expression); \
    } \
    break

static void combine(const Call *call, const u32 *from_a, const u32 *from_b, u32 *out, u32 count, u32 alpha_bits) {
  i32x4 a_is_integer = -(i32)CONSTANT(A_IS_INTEGER), b_is_integer = -(i32)CONSTANT(B_IS_INTEGER);
  f32x4 alpha = splat(as_float(alpha_bits));
  switch (CONSTANT(CODE)) {
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

FRAGMENT(Operands, elementwise_fragments_binary_f32) = {combine};
