// Functions of one f32, each in a loop of its own.

#include "elementwise/fragments/codes_of_one.wgsl.h"
#include "elementwise/fragments/elements.h"

static f32x4 log4(f32x4 x) { return (f32x4)LANES(log_f32, x); }
static f32x4 sin4(f32x4 x) { return (f32x4)LANES(sin_f32, x); }
static f32x4 cos4(f32x4 x) { return (f32x4)LANES(cos_f32, x); }

INLINE f32x4 hardswish4(f32x4 x) { return x * min4(max4(x + 3.0f, splat(0.0f)), splat(6.0f)) / 6.0f; }

#define EACH(code, expression) \
  case code: \
    FOUR_BY_FOUR { \
      f32x4 x = (f32x4)load_up_to_4(from + at, count - at); \
      STORE_EACH(expression); \
    } \
    break

static void apply(u32 code, const u32 *from, u32 *out, u32 count, u32 first_bits, u32 second_bits) {
  f32x4 first = splat(as_float(first_bits)), second = splat(as_float(second_bits));
  switch (code) {
    EACH(IS_ZERO, (x == 0.0f) & 1);
    EACH(IS_NONZERO, (x != 0.0f) & 1);
    EACH(CONVERT, wasm_i32x4_trunc_sat_f32x4((v128_t)x));
    EACH(NEG, -x);
    EACH(ABS, abs4(x));
    EACH(RELU, max4(x, splat(0.0f)));
    EACH(CLAMP, min4(max4(x, first), second));
    EACH(CLAMP_MIN, max4(x, first));
    EACH(CLAMP_MAX, min4(x, second));
    EACH(SIGMOID, sigmoid4(x));
    EACH(SILU, silu4(x));
    EACH(GELU, gelu4(x));
    EACH(GELU_TANH, gelu_tanh4(x));
    EACH(TANH, tanh4(x));
    EACH(EXP, exp4(x));
    EACH(LOG, log4(x));
    EACH(SQRT, sqrt4(x));
    EACH(RSQRT, 1.0f / sqrt4(x));
    EACH(SIN, sin4(x));
    EACH(COS, cos4(x));
    EACH(ROUND, round4(x));
    EACH(HARDSWISH, hardswish4(x));
    EACH(LEAKY_RELU, select4(x >= 0.0f, x, x * first));
  }
}

FRAGMENT(Elements, elementwise_fragments_unary_f32) = {apply};
