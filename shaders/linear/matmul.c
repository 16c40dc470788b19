// out = alpha * a b + beta * bias for each batch, in tiles of 4 × 4 outputs. Where rows of b lie one after the
// other, a tile has the four columns in a vector; where columns do, it takes four of their values at a time.
// a: [batches, rows, depth]; b: [batches, depth, columns], or any strides over one matrix;
// out: [batches, rows, columns]; bias: any strides over [rows, columns].

#include "kernel.h"
#include "linear/matmul.wgsl.h"
#include "maths.h"

// The sums of a tile: a row of out in each vector. a: the first of TILE rows; b: the first of TILE columns.
INLINE void multiply(const matmul_params *params, const f32 *const *a, const f32 *const *b, f32 (*sums)[TILE]) {
  u32 depth = params->depth, step = params->b_depth_stride;
  f32x4 across[TILE] = {0};
  if (step == 1) {  // columns of b lie in memory as rows of a do
    f32x4 parts[TILE][TILE] = {0};
    u32 k = 0;
    for (; k + 4 <= depth; k += 4) {
      f32x4 values[TILE];
      for (u32 at = 0; at < TILE; at++) values[at] = load_f32x4(b[at] + k);
      for (u32 row = 0; row < TILE; row++) {
        f32x4 own = load_f32x4(a[row] + k);
        for (u32 at = 0; at < TILE; at++) parts[row][at] = fma4(own, values[at], parts[row][at]);
      }
    }
    for (u32 row = 0; row < TILE; row++) {
      for (u32 at = 0; at < TILE; at++) {
        f32 sum = sum_of(parts[row][at]);
        for (u32 rest = k; rest < depth; rest++) sum += a[row][rest] * b[at][rest];
        sums[row][at] = sum;
      }
    }
    return;
  }
  int adjacent = b[3] == b[0] + 3;
  for (u32 k = 0; k < depth; k++) {
    u32 at = k * step;
    f32x4 values = adjacent ? load_f32x4(b[0] + at) : (f32x4){b[0][at], b[1][at], b[2][at], b[3][at]};
    for (u32 row = 0; row < TILE; row++) across[row] = fma4(splat(a[row][k]), values, across[row]);
  }
  for (u32 row = 0; row < TILE; row++) store_f32x4(sums[row], across[row]);
}

KERNEL(linear_matmul, 1) {
  const matmul_params *params = PARAMS(matmul);
  u32 tiles_across = ceil_div(params->columns, TILE), tiles_down = ceil_div(params->rows, TILE);
  u32 last = min_u32(share.last * WORKGROUP, params->batches * tiles_across * tiles_down);
  for (u32 tile = share.first * WORKGROUP; tile < last; tile++) {
    u32 column = tile % tiles_across * TILE, row = tile / tiles_across % tiles_down * TILE;
    u32 batch = tile / (tiles_across * tiles_down);
    const f32 *a[TILE], *b[TILE];
    for (u32 at = 0; at < TILE; at++) {
      u32 known_row = min_u32(row + at, params->rows - 1), known_column = min_u32(column + at, params->columns - 1);
      a[at] = BUFFER(const f32, a) + (batch * params->rows + known_row) * params->depth;
      b[at] = BUFFER(const f32, b) + batch * params->depth * params->columns + known_column * params->b_column_stride;
    }
    f32 sums[TILE][TILE];
    multiply(params, a, b, sums);
    for (u32 down = 0; down < min_u32(TILE, params->rows - row); down++) {
      f32 *out = BUFFER(f32, out) + (batch * params->rows + row + down) * params->columns + column;
      const f32 *bias = BUFFER(const f32, bias) + (row + down) * params->bias_row_stride;
      for (u32 at = 0; at < min_u32(TILE, params->columns - column); at++) {
        f32 value = params->alpha * sums[down][at];
        if (params->has_bias) value += params->beta * bias[(column + at) * params->bias_column_stride];
        out[at] = value;
      }
    }
  }
}
