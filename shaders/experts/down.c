// out = Σ share * (hidden downᵀ + bias) over the experts of a token, plus a residual where there is one.
// down: [experts * rows, K]; chosen, shares: [tokens, used]; bias: [experts * rows]; residual, out: [tokens, rows].
// A workgroup is ROWS_AT_ONCE rows of all experts, for all tokens.

#include "experts/dots.h"
#include "experts/down.wgsl.h"
#include "experts/fragments/dots.wgsl.h"

enum { ROWS_AT_ONCE = WORKGROUP / SHARERS };

static void begin_sums(const Call *call, u32 first, u32 end) {
  const down_params *params = PARAMS(down);
  const f32 *residual = BUFFER(const f32, residual);
  f32 *out = BUFFER(f32, out);
  for (u32 token = 0; token < params->shape.tokens; token++) {
    for (u32 at = token * params->rows + first; at < token * params->rows + end; at++) {
      out[at] = params->has_residual ? residual[at] : 0;
    }
  }
}

// Some rows of an expert, up to TILE from `first` on, for its users.
static void add_rows(const Call *call, const Factors *factors, u32 expert, u32 first, u32 count, const Users *users) {
  const down_params *params = PARAMS(down);
  u32 row = expert * params->rows + first;
  f32 sums[MAX_USERS * TILE];
  multiply(factors, row, count, users, 1, sums);
  for (u32 user = 0; user < users->count; user++) {
    u32 slot = users->slots[user];
    f32 share = BUFFER(const f32, shares)[slot];
    f32 *out = BUFFER(f32, out) + slot / params->used * params->rows + first;
    for (u32 at = 0; at < count; at++) {
      f32 added = params->has_bias ? BUFFER(const f32, bias)[row + at] : 0;
      out[at] += share * (sums[user * TILE + at] + added);
    }
  }
}

KERNEL(experts_down, 1) {
  const down_params *params = PARAMS(down);
  const u32 *chosen = BUFFER(const u32, chosen);
  u32 slots = params->shape.tokens * params->used;
  Factors factors = factors_of(call, share, &params->shape, slots);
  u32 first = share.first * ROWS_AT_ONCE, end = min_u32(share.last * ROWS_AT_ONCE, params->rows);
  begin_sums(call, first, end);
  for (u32 expert = 0; expert < params->experts; expert++) {
    Users users;
    for (u32 slot = 0; slot < slots;) {
      slot = find_users(chosen, slots, expert, slot, &users);
      for (u32 row = first; users.count && row < end; row += TILE) {
        add_rows(call, &factors, expert, row, min_u32(end - row, TILE), &users);
      }
    }
  }
}
