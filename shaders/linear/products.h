// Products of rows of a weight with tokens: what gemm_int8.c and gemm_wide.c share.

#pragma once

#include "linear/fragments/epilogue.h"
#include "shared/weights/weights.h"

enum { TILE = 4 };  // rows that are multiplied together

// Pairs of rows that are computed at a time.
typedef struct {
  u32 first;
  u32 count;
  u32 rows[2 * MAX_PAIRS];  // the first ones, then the second ones; the last of each again up to whole tiles
} Pairs;

// The rows of as many first ones as second ones.
INLINE u32 rows_of_each(u32 pairs) { return ceil_div(pairs, TILE) * TILE; }

// The pairs of a workgroup.
Pairs pairs_of(const Call *call, u32 group);

// Stores the sums of a token, which are laid out as the rows are.
void store_sums(const Call *call, const Pairs *pairs, u32 token, f32 *sums);

// Multiplies the share's rows, dequantised, by tokens in floats. x: [tokens, columns].
void multiply_floats(const Call *call, Share share, const Weights *kind, const f32 *x);
