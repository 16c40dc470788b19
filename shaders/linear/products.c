// Products of rows of a weight with tokens in floats.

#include "linear/products.h"

enum { SCRATCH_FLOATS = SCRATCH_BYTES / sizeof(f32) };

// Tokens whose sums with TILE rows stay in registers: machines without byte dots may have half as many.
INLINE u32 tokens_at_once(void) { return has_byte_dots() ? TILE : TILE / 2; }

static Pairs some_pairs(const Call *call, u32 first, u32 count) {
  Pairs pairs = {.first = first, .count = count};
  u32 each = rows_of_each(count);
  u32 *firsts = pairs.rows, *seconds = pairs.rows + each;
  PLUG(Epilogue, epilogue)->rows(call, first, count, firsts, seconds);
  for (u32 at = count; at < each; at++) {
    firsts[at] = firsts[count - 1];
    seconds[at] = seconds[count - 1];
  }
  return pairs;
}

Pairs pairs_of(const Call *call, u32 group) {
  u32 all = ((const ProductParams *)call->buffers[BINDING_params])->pairs;
  u32 first = group * MAX_PAIRS;
  if (first >= all) return (Pairs){first, 0, {0}};
  return some_pairs(call, first, min_u32(MAX_PAIRS, all - first));
}

void store_sums(const Call *call, const Pairs *pairs, u32 token, f32 *sums) {
  f32 *seconds = sums + rows_of_each(pairs->count);
  PLUG(Epilogue, epilogue)->store(call, token, pairs->first, pairs->count, sums, seconds);
}

INLINE f32x4 horizontal_sums(f32x4 a, f32x4 b, f32x4 c, f32x4 d) {
  f32x4 ab = __builtin_shufflevector(a, b, 0, 4, 2, 6) + __builtin_shufflevector(a, b, 1, 5, 3, 7);
  f32x4 cd = __builtin_shufflevector(c, d, 0, 4, 2, 6) + __builtin_shufflevector(c, d, 1, 5, 3, 7);
  return __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
}

// sums: [tokens, stride], of which TILE columns are computed. rows: [TILE, row_stride]; x: [tokens, columns].
INLINE void multiply_tile(
    const f32 *rows, u32 row_stride, const f32 *x, u32 columns, u32 tokens, f32 *sums, u32 stride) {
  f32x4 parts[TILE][TILE];
  for (u32 token = 0; token < tokens; token++) {
    for (u32 row = 0; row < TILE; row++) parts[token][row] = splat(0.0f);
  }
  for (u32 at = 0; at < columns; at += 4) {
    f32x4 values[TILE];
    for (u32 row = 0; row < TILE; row++) values[row] = load_f32x4(rows + row * row_stride + at);
    for (u32 token = 0; token < tokens; token++) {
      f32x4 own = load_f32x4(x + token * columns + at);
      for (u32 row = 0; row < TILE; row++) parts[token][row] = fma4(own, values[row], parts[token][row]);
    }
  }
  for (u32 token = 0; token < tokens; token++) {
    f32x4 *own = parts[token];
    store_f32x4(sums + token * stride, horizontal_sums(own[0], own[1], own[2], own[3]));
  }
}

// Each number of tokens has its own loop, in which the sums stay in registers.
static void multiply_rows(
    const f32 *rows, u32 row_stride, const f32 *x, u32 columns, u32 tokens, f32 *sums, u32 stride) {
  if (tokens == 4) multiply_tile(rows, row_stride, x, columns, 4, sums, stride);
  if (tokens == 3) multiply_tile(rows, row_stride, x, columns, 3, sums, stride);
  if (tokens == 2) multiply_tile(rows, row_stride, x, columns, 2, sums, stride);
  if (tokens == 1) multiply_tile(rows, row_stride, x, columns, 1, sums, stride);
}

// Multiplies some pairs, all of whose rows fit the scratch memory.
static void multiply_pairs(const Call *call, const Pairs *pairs, f32 *rows, const Weights *kind, const f32 *x) {
  const ProductParams *params = call->buffers[BINDING_params];
  Matrix matrix = linear_matrix(&params->shape, BUFFER(const u8, weight), BUFFER(const u8, scales));
  u32 columns = 4 * matrix.quads, row_stride = 8 * matrix.octets, count = 2 * rows_of_each(pairs->count);
  for (u32 at = 0; at < count; at++) {
    kind->dequantise(&matrix, pairs->rows[at], 0, matrix.octets, rows + at * row_stride);
  }
  f32 sums[TILE][2 * MAX_PAIRS];
  u32 at_once = tokens_at_once();
  for (u32 token = 0; token < params->shape.tokens; token += at_once) {
    u32 tokens = min_u32(at_once, params->shape.tokens - token);
    for (u32 at = 0; at < count; at += TILE) {
      const f32 *first = rows + at * row_stride;
      multiply_rows(first, row_stride, x + token * columns, columns, tokens, sums[0] + at, 2 * MAX_PAIRS);
    }
    for (u32 at = 0; at < tokens; at++) store_sums(call, pairs, token + at, sums[at]);
  }
}

void multiply_floats(const Call *call, Share share, const Weights *kind, const f32 *x) {
  const ProductParams *params = call->buffers[BINDING_params];
  u32 at_once = SCRATCH_FLOATS / (8 * params->shape.octets * 2 * TILE) * TILE;  // pairs whose rows fit
  f32 *rows = scratch_of(share.thread);
  for (u32 group = share.first; group < share.last; group++) {
    Pairs pairs = pairs_of(call, group);
    if (pairs.count && pairs.count <= at_once) multiply_pairs(call, &pairs, rows, kind, x);
    for (u32 at = 0; pairs.count > at_once && at < pairs.count; at += at_once) {
      Pairs some = some_pairs(call, pairs.first + at, min_u32(at_once, pairs.count - at));
      multiply_pairs(call, &some, rows, kind, x);
    }
  }
}
