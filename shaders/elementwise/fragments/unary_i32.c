// Functions of one i32, each in a loop of its own.

#include "elementwise/fragments/codes_of_one.wgsl.h"
#include "elementwise/fragments/elements.h"

INLINE i32x4 min_i32x4(i32x4 a, i32x4 b) { return (i32x4)wasm_i32x4_min((v128_t)a, (v128_t)b); }
INLINE i32x4 max_i32x4(i32x4 a, i32x4 b) { return (i32x4)wasm_i32x4_max((v128_t)a, (v128_t)b); }

#define EACH(code, expression) \
  case code: \
    FOUR_BY_FOUR { \
      i32x4 x = (i32x4)load_up_to_4(from + at, count - at); \
      STORE_EACH(expression); \
    } \
    break

static void apply(u32 code, const u32 *from, u32 *out, u32 count, u32 first_bits, u32 second_bits) {
  i32x4 first = (i32)first_bits, second = (i32)second_bits;
  switch (code) {
    EACH(IS_ZERO, (x == 0) & 1);
    EACH(IS_NONZERO, (x != 0) & 1);
    EACH(CONVERT, wasm_f32x4_convert_i32x4((v128_t)x));
    EACH(NEG, wasm_i32x4_neg((v128_t)x));
    EACH(ABS, wasm_i32x4_abs((v128_t)x));
    EACH(RELU, max_i32x4(x, 0));
    EACH(CLAMP, min_i32x4(max_i32x4(x, first), second));
    EACH(CLAMP_MIN, max_i32x4(x, first));
    EACH(CLAMP_MAX, min_i32x4(x, second));
    EACH(BITWISE_NOT, ~x);
  }
}

FRAGMENT(Elements, elementwise_fragments_unary_i32) = {apply};
