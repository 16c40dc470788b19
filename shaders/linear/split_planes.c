// Tokens of x as gemm_int8.c takes them, normalised first where there is a norm.

#include "kernel.h"
#include "linear/split_planes.wgsl.h"
#include "linear/tokens.h"
#include "maths.h"

// The factor by which the norm multiplies a token.
static f32 norm_scale(const f32 *x, u32 columns, f32 eps) {
  f32x4 squares = splat(0.0f);
  for (u32 at = 0; at < columns; at += 4) squares = fma4(load_f32x4(x + at), load_f32x4(x + at), squares);
  return 1.0f / __builtin_sqrtf(sum_of(squares) / (f32)columns + eps);
}

INLINE f32x4 column_quad(const f32 *x, const f32 *norm, f32 scale, u32 at) {
  f32x4 values = load_f32x4(x + at);
  return norm ? scale * (values * load_f32x4(norm + at)) : values;
}

INLINE v128_t evens(v128_t a, v128_t b) { return wasm_i16x8_shuffle(a, b, 0, 2, 4, 6, 8, 10, 12, 14); }
INLINE v128_t odds(v128_t a, v128_t b) { return wasm_i16x8_shuffle(a, b, 1, 3, 5, 7, 9, 11, 13, 15); }

// Splits 16 columns into their high and their low bytes. With 128 added, the low byte carries into the high one.
INLINE void store_planes(u8 *planes, v128_t a, v128_t b) {
  v128_t raised = wasm_i16x8_splat(128);
  v128_t high = wasm_i8x16_narrow_i16x8(
      wasm_i16x8_shr(wasm_i16x8_add(a, raised), 8), wasm_i16x8_shr(wasm_i16x8_add(b, raised), 8));
  wasm_v128_store(planes, high);
  wasm_v128_store(planes + 32, wasm_i8x16_shuffle(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30));
}

INLINE void store_wholes(u8 *wholes, v128_t a, v128_t b) {
  wasm_v128_store(wholes, evens(a, b));
  wasm_v128_store(wholes + 16, odds(a, b));
}

// Puts 32 columns into the order of the weight's low bytes, [0] and [1], and of its high ones.
INLINE void order_columns(const i32x4 *quads, u32 paired, v128_t *ordered) {
  for (u32 at = 0; at < 2; at++, quads += 4) {
    if (paired) {
      v128_t a = wasm_i16x8_narrow_i32x4((v128_t)quads[0], (v128_t)quads[1]);
      v128_t b = wasm_i16x8_narrow_i32x4((v128_t)quads[2], (v128_t)quads[3]);
      ordered[at] = evens(a, b);
      ordered[2 + at] = odds(a, b);
    } else {
      ordered[at] = wasm_i16x8_narrow_i32x4((v128_t)quads[0], (v128_t)quads[2]);
      ordered[2 + at] = wasm_i16x8_narrow_i32x4((v128_t)quads[1], (v128_t)quads[3]);
    }
  }
}

INLINE f32 octet_top(f32x4 a, f32x4 b) { return max_of(max4(abs4(a), abs4(b))); }
INLINE i32 octet_sum(i32x4 a, i32x4 b) { return (a.x + b.x) + (a.y + b.y) + (a.z + b.z) + (a.w + b.w); }

static void quantise_block(const f32x4 *quads, u32 paired, u32 by_bytes, const WholeToken *to, u32 block) {
  f32x4 total = splat(0.0f);
  for (u32 at = 0; at < 8; at++) total += quads[at] * 0.0f;  // infinities and NaN are no integers
  f32 passed_on = sum_of(total);
  f32x4 tops, sums;
  for (u32 octet = 0; octet < 4; octet++) tops[octet] = octet_top(quads[2 * octet], quads[2 * octet + 1]);
  f32x4 by = TOP / max4(tops, splat(1e-30f));
  i32x4 wholes[8];
  for (u32 at = 0; at < 8; at++) {
    wholes[at] = (i32x4)wasm_i32x4_trunc_sat_f32x4((v128_t)round4(quads[at] * by[at / 2]));
  }
  for (u32 octet = 0; octet < 4; octet++) sums[octet] = (f32)octet_sum(wholes[2 * octet], wholes[2 * octet + 1]);
  f32x4 scales = tops * (1.0f / TOP) + passed_on;
  sums *= scales;
  store_f32x4(to->scales + 4 * block, scales);
  to->half_sums[2 * block] = sums.x + sums.y;
  to->half_sums[2 * block + 1] = sums.z + sums.w;
  to->sums[block] = sum_of(sums);
  v128_t ordered[4];
  order_columns(wholes, paired, ordered);
  u8 *columns = to->columns + 64 * block;
  if (by_bytes) {
    store_planes(columns, ordered[0], ordered[1]);
    store_planes(columns + 16, ordered[2], ordered[3]);
  } else {
    store_wholes(columns, ordered[0], ordered[1]);
    store_wholes(columns + 32, ordered[2], ordered[3]);
  }
}

void quantise_token(const f32 *x, const f32 *norm, f32 scale, u32 blocks, u32 paired, WholeToken to) {
  u32 by_bytes = (u32)has_byte_dots();
  for (u32 block = 0; block < blocks; block++) {
    f32x4 quads[8];
    for (u32 at = 0; at < 8; at++) quads[at] = column_quad(x, norm, scale, 32 * block + 4 * at);
    quantise_block(quads, paired, by_bytes, &to, block);
  }
}

KERNEL(linear_split_planes, 4) {
  const split_planes_params *params = PARAMS(split_planes);
  u32 columns = 4 * params->quads;
  u32 last = min_u32(share.last * TOKENS, params->tokens);
  const f32 *norm = CONSTANT(NORMED) ? BUFFER(const f32, norm) : 0;
  for (u32 token = share.first * TOKENS; token < last; token++) {
    const f32 *x = BUFFER(const f32, x) + token * columns;
    f32 scale = norm ? norm_scale(x, columns, params->eps) : 1.0f;
    if (params->tokens <= FEW_TOKENS) {
      WholeToken to = whole_token(BUFFER(void, planes), token, columns / 32);
      quantise_token(x, norm, scale, columns / 32, CONSTANT(PAIRED), to);
    } else {
      f32 *out = BUFFER(f32, planes) + token * columns;
      for (u32 at = 0; at < columns; at += 4) store_f32x4(out + at, column_quad(x, norm, scale, at));
    }
  }
}
