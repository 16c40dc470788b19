// Products of rows of a weight with tokens: what gemm_int8.c and gemm_wide.c share.

#pragma once

#include "linear/fragments/epilogue.h"
#include "shared/weights/weights.h"

// The pairs of rows that a workgroup computes, for all tokens.
typedef struct {
  u32 first;
  u32 count;
  u32 rows[2 * MAX_PAIRS];  // two each, and the last one again up to a multiple of four
} Pairs;

Pairs pairs_of(const Call *call, u32 group);

// Stores the sums of a token: [2 pairs].
void store_sums(const Call *call, const Pairs *pairs, u32 token, const f32 *sums);

// Multiplies the share's rows, dequantised, by tokens in floats. x: [tokens, columns].
void multiply_floats(const Call *call, Share share, const Weights *kind, const f32 *x);
