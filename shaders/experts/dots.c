// Dot products of tokens with rows of an expert's weight: the rows are dequantised once for all tokens.

#include "experts/dots.h"

Factors factors_of(const Call *call, Share share, const LinearParams *shape) {
  return (Factors){
      .kind = weights_of(call),
      .matrix = linear_matrix(shape, BUFFER(const u8, weight), BUFFER(const u8, scales)),
      .x = BUFFER(const f32, x),
      .rows = scratch_of(share.thread),
  };
}

// Multiply TILE rows by some (a constant) tokens, whose sums stay in registers. rows: [TILE, stride].
INLINE void multiply_tile(const f32 *rows, u32 stride, const f32 *const *x, u32 columns, u32 tokens, f32 *sums) {
  f32x4 parts[TILE][TILE] = {};
  for (u32 at = 0; at < columns; at += 4) {
    f32x4 values[TILE];
    for (u32 row = 0; row < TILE; row++) values[row] = load_f32x4(rows + row * stride + at);
    for (u32 token = 0; token < tokens; token++) {
      f32x4 own = load_f32x4(x[token] + at);
      for (u32 row = 0; row < TILE; row++) parts[token][row] = fma4(own, values[row], parts[token][row]);
    }
  }
  for (u32 token = 0; token < tokens; token++) {
    for (u32 row = 0; row < TILE; row++) sums[token * TILE + row] = sum_of(parts[token][row]);
  }
}

void multiply(const Factors *factors, u32 row, u32 count, const Users *users, u32 slots_per_token, f32 *sums) {
  const Matrix *matrix = &factors->matrix;
  u32 columns = 4 * matrix->quads, stride = 8 * matrix->octets;
  for (u32 at = 0; at < TILE; at++) {
    u32 known = row + min_u32(at, count - 1);
    factors->kind->dequantise(matrix, known, 0, matrix->octets, factors->rows + at * stride);
  }
  for (u32 first = 0; first < users->count; first += TILE) {
    u32 tokens = min_u32(TILE, users->count - first);
    const f32 *x[TILE];
    for (u32 at = 0; at < tokens; at++) x[at] = factors->x + users->slots[first + at] / slots_per_token * columns;
    f32 *own = sums + first * TILE;
    if (tokens == 4) multiply_tile(factors->rows, stride, x, columns, 4, own);
    if (tokens == 3) multiply_tile(factors->rows, stride, x, columns, 3, own);
    if (tokens == 2) multiply_tile(factors->rows, stride, x, columns, 2, own);
    if (tokens == 1) multiply_tile(factors->rows, stride, x, columns, 1, own);
  }
}
