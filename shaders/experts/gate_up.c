// hidden = activation(x gateᵀ) * (x upᵀ), each with its bias where there is one, for the experts of a token: the
// weights of other experts are not read. The weight is gate and up, one after the other, each [experts * rows, K].
// chosen: [tokens, used]; bias: [2, experts * rows]; hidden: [tokens, used, rows].
// A workgroup is ROWS_AT_ONCE rows of an expert, for all tokens that use it.

#include "experts/dots.h"
#include "experts/fragments/dots.wgsl.h"
#include "experts/gate_up.wgsl.h"
#include "linear/fragments/gate.h"

enum { ROWS_AT_ONCE = WORKGROUP / SHARERS };

// Some rows of an expert, up to TILE from `first` on, for its users.
static void compute_rows(const Call *call, const Factors *factors, u32 expert, u32 first, u32 count, const Users *users) {
  const gate_up_params *params = PARAMS(gate_up);
  u32 row = expert * params->rows + first, up_row = params->experts * params->rows + row;
  f32 gates[MAX_USERS * TILE], ups[MAX_USERS * TILE];
  multiply(factors, row, count, users, params->used, gates);
  multiply(factors, up_row, count, users, params->used, ups);
  const f32 *bias = BUFFER(const f32, bias);
  for (u32 user = 0; user < users->count; user++) {
    f32 *gate = gates + user * TILE, *up = ups + user * TILE;
    for (u32 at = 0; params->has_bias && at < count; at++) gate[at] += bias[row + at], up[at] += bias[up_row + at];
    f32 *hidden = BUFFER(f32, hidden) + users->slots[user] * params->rows + first;
    PLUG(Gate, gate)->row(gate, up, hidden, count);
  }
}

KERNEL(experts_gate_up, 1) {
  const gate_up_params *params = PARAMS(gate_up);
  const u32 *chosen = BUFFER(const u32, chosen);
  Factors factors = factors_of(call, share, &params->shape, params->shape.tokens);
  u32 slots = params->shape.tokens * params->used, groups = ceil_div(params->rows, ROWS_AT_ONCE);
  u32 last = min_u32(share.last, params->experts * groups);
  for (u32 group = share.first, next; group < last; group = next) {
    u32 expert = group / groups;
    next = min_u32(last, (expert + 1) * groups);
    u32 first = (group - expert * groups) * ROWS_AT_ONCE;
    u32 end = min_u32((next - expert * groups) * ROWS_AT_ONCE, params->rows);
    Users users;
    for (u32 slot = 0; slot < slots;) {
      slot = find_users(chosen, slots, expert, slot, &users);
      for (u32 row = first; users.count && row < end; row += TILE) {
        compute_rows(call, &factors, expert, row, min_u32(end - row, TILE), &users);
      }
    }
  }
}
