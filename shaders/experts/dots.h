// Dot products of tokens with rows of an expert's weight, by integers where a row meets few tokens (see
// linear/tokens.h), otherwise by floats, for which the row is dequantised once.

#pragma once

#include "experts/users.h"
#include "shared/weights/weights.h"

enum { TILE = 4 };  // rows that are multiplied together

typedef struct {
  const Weights *kind;
  Matrix matrix;
  const f32 *x;  // [tokens, columns]
  void *wholes;  // the tokens in integers, or null
  f32 *room;     // for TILE rows
} Factors;

// Prepare the weight and the tokens for a thread: x has `tokens` rows.
Factors factors_of(const Call *call, Share share, const LinearParams *shape, u32 tokens);

// Compute the products of `count` rows, up to TILE, from `row` on with the token of each user: sums [users, TILE].
// A slot's token is slot / slots_per_token.
void multiply(const Factors *factors, u32 row, u32 count, const Users *users, u32 slots_per_token, f32 *sums);
