// How two elements combine in i32, each function in a loop of its own. Sums and products wrap, and a quotient that
// does not exist is a, as in WGSL; there are no traps.

#include "elementwise/fragments/codes_of_two.wgsl.h"
#include "elementwise/fragments/elements.h"

INLINE i32 trunc_divide(i32 a, i32 b) { return b == 0 || (b == -1 && a == -0x7fffffff - 1) ? a : a / b; }

// a / b rounded towards minus infinity.
INLINE i32 floor_divide(i32 a, i32 b) {
  i32 quotient = trunc_divide(a, b);
  int is_exact = (u32)quotient * (u32)b == (u32)a;
  return is_exact || (a < 0) == (b < 0) ? quotient : (i32)((u32)quotient - 1);
}

// Negative exponents leave only what is whole: 1 and -1 have powers there, all else gives 0.
INLINE i32 power(i32 base, i32 exponent) {
  if (exponent < 0 && base != 1 && base != -1) return 0;
  u32 product = 1, square = (u32)base;
  for (u32 left = exponent < 0 ? 0u - (u32)exponent : (u32)exponent; left; left >>= 1) {
    if (left & 1) product *= square;
    square *= square;
  }
  return (i32)product;
}

static i32x4 floor_divide4(i32x4 a, i32x4 b) { return (i32x4)LANES_OF_TWO(floor_divide, a, b); }
static i32x4 trunc_divide4(i32x4 a, i32x4 b) { return (i32x4)LANES_OF_TWO(trunc_divide, a, b); }
static i32x4 power4(i32x4 a, i32x4 b) { return (i32x4)LANES_OF_TWO(power, a, b); }

#define EACH(code, expression) \
  case code: \
    FOUR_BY_FOUR { \
      i32x4 a = (i32x4)load_up_to_4(from_a + at, count - at); \
      i32x4 b = (i32x4)load_up_to_4(from_b + at, count - at); \
      STORE_EACH(expression); \
    } \
    break

static void combine(const Call *call, const u32 *from_a, const u32 *from_b, u32 *out, u32 count, u32 alpha) {
  switch (CONSTANT(CODE)) {
    EACH(ADD, (u32x4)a + alpha * (u32x4)b);
    EACH(MUL, (u32x4)a * (u32x4)b);
    EACH(FLOOR_DIV, floor_divide4(a, b));
    EACH(TRUNC_DIV, trunc_divide4(a, b));
    EACH(MINIMUM, wasm_i32x4_min((v128_t)a, (v128_t)b));
    EACH(MAXIMUM, wasm_i32x4_max((v128_t)a, (v128_t)b));
    EACH(POW, power4(a, b));
    EACH(EQ, (a == b) & 1);
    EACH(NE, (a != b) & 1);
    EACH(GE, (a >= b) & 1);
    EACH(GT, (a > b) & 1);
    EACH(LE, (a <= b) & 1);
    EACH(LT, (a < b) & 1);
    EACH(LOGICAL_AND, (a != 0) & (b != 0) & 1);
    EACH(LOGICAL_OR, ((a != 0) | (b != 0)) & 1);
    EACH(BITWISE_AND, a & b);
    EACH(BITWISE_OR, a | b);
  }
}

FRAGMENT(Operands, elementwise_fragments_binary_i32) = {combine};
