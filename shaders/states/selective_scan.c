// The selective scan of Mamba-2: of each head a matrix H [state_dim, head_dim] forgets, token after token
// (H *= e^{a δ}), takes in what is new (H += B (δ v)ᵀ), and is asked (Hᵀ C). What comes out is
// (Hᵀ C + skip · v) · silu(z). The shader's states/fragments/scan.wgsl has the shapes. Columns of H are independent:
// a tile of them goes through all tokens, its rows in the nearest cache.

#include "kernel.h"
#include "maths.h"
#include "rows.h"
#include "states/fragments/scan.wgsl.h"
#include "states/selective_scan.wgsl.h"

enum { TILE = 4 };  // vectors of columns that go through a token together

INLINE f32 softplus(f32 value) { return max_f32(value, 0) + log_f32(1.0f + exp_f32(value > 0 ? -value : value)); }

// Of a token and a head.
typedef struct {
  const f32 *b;
  const f32 *c;
  f32 step;  // δ
  f32 kept;  // e^{a δ}
  f32 skip;
} Seen;

static Seen seen_of(const Call *call, u32 token, u32 head) {
  const scan_params *params = PARAMS(scan);
  const f32 *rates = BUFFER(const f32, rates);
  u32 heads = params->heads, all_groups = params->group_count * params->state_dim;
  const f32 *b = BUFFER(const f32, x) + token * (params->count + 2 * all_groups) + params->count +
                 head / (heads / params->group_count) * params->state_dim;
  f32 dt = BUFFER(const f32, projected)[(token + 1) * params->row - heads + head];
  f32 step = softplus(dt + rates[heads + head]);
  return (Seen){
    .b = b,
    .c = b + all_groups,
    .step = step,
    .kept = exp_f32(step * rates[head]),
    .skip = rates[2 * heads + head],
  };
}

// One token through `vectors` (a constant) vectors of columns of H.
// state: rows of head_dim, of which the vectors begin at column 0; values, gates, out: the columns'.
INLINE void take_token(const Seen *seen, u32 rows, f32 *state, u32 stride, u32 vectors, u32 lanes, const f32 *values,
                       const f32 *gates, f32 *out) {
  f32x4 taken[TILE], sums[TILE] = {};
  for (u32 at = 0; at < vectors; at++) taken[at] = seen->step * load_lanes(values + 4 * at, lanes, 0);
  for (u32 row = 0; row < rows; row++) {
    f32x4 b = splat(seen->b[row]), c = splat(seen->c[row]);
    for (u32 at = 0; at < vectors; at++) {
      f32 *held = state + row * stride + 4 * at;
      f32x4 now = fma4(b, taken[at], load_lanes(held, lanes, 0) * seen->kept);
      store_lanes(held, lanes, now);
      sums[at] = fma4(now, c, sums[at]);
    }
  }
  for (u32 at = 0; at < vectors; at++) {
    f32x4 whole = sums[at] + seen->skip * load_lanes(values + 4 * at, lanes, 0);
    store_lanes(out + 4 * at, lanes, whole * silu4(load_lanes(gates + 4 * at, lanes, 0)));
  }
}

// All tokens through some columns of one head; `column` counts those of all heads.
static void take_columns(const Call *call, u32 column, u32 columns) {
  const scan_params *params = PARAMS(scan);
  u32 width = params->head_dim, rows = params->state_dim, head = column / width;
  u32 line = params->count + 2 * params->group_count * rows;
  f32 *state = BUFFER(f32, state) + head * rows * width + column % width;
  if (BUFFER(const i32, start_pos)[0] == 0) {
    for (u32 row = 0; row < rows; row++) __builtin_memset(state + row * width, 0, columns * sizeof(f32));
  }
  for (u32 token = 0; token < params->tokens; token++) {
    Seen seen = seen_of(call, token, head);
    const f32 *values = BUFFER(const f32, x) + token * line + column;
    const f32 *gates = BUFFER(const f32, projected) + token * params->row + column;
    f32 *out = BUFFER(f32, out) + token * params->count + column;
    u32 at = 0;
    for (; at + 4 * TILE <= columns; at += 4 * TILE) {
      take_token(&seen, rows, state + at, width, TILE, 4, values + at, gates + at, out + at);
    }
    for (; at < columns; at += 4) {
      take_token(&seen, rows, state + at, width, 1, lanes_at(at, columns), values + at, gates + at, out + at);
    }
  }
}

KERNEL(states_selective_scan, 1) {
  const scan_params *params = PARAMS(scan);
  u32 last = min_u32(share.last * WORKGROUP, params->count);
  for (u32 at = share.first * WORKGROUP, next; at < last; at = next) {
    next = min_u32(last, min_u32(at + WORKGROUP, at - at % params->head_dim + params->head_dim));
    take_columns(call, at, next - at);
  }
}
