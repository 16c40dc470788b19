// The gated delta rule: of each value head a matrix S [key_dim, value_dim] forgets, token after token (S *= e^g),
// is corrected where it would give another value for the key (S += k δᵀ with δ = β (v - Sᵀ k)), and asked
// (out = Sᵀ q · key_dim^-½). Keys and queries have the length 1. The shader's states/fragments/delta.wgsl has the
// shapes. Columns of S are independent: a tile of them goes through all tokens, its rows in the nearest cache.

#include "kernel.h"
#include "maths.h"
#include "rows.h"
#include "states/fragments/delta.wgsl.h"
#include "states/gated_delta.wgsl.h"

enum { TILE = 4 };  // vectors of columns that go through a token together
static const f32 EPS = 1e-6f;

INLINE f32 softplus(f32 value) { return max_f32(value, 0) + log_f32(1.0f + exp_f32(value > 0 ? -value : value)); }

// Of a token and a head.
typedef struct {
  const f32 *key;
  const f32 *query;
  f32 alike;      // keyᵀ query
  f32 key_scale;  // to length 1
  f32 query_scale;
  f32 write;  // β
  f32 keep;   // e^g
} Asked;

INLINE u32 key_head_of(const delta_params *params, u32 head) {
  return params->tiled ? head % params->key_heads : head / (params->value_heads / params->key_heads);
}

static Asked asked_of(const Call *call, u32 token, u32 head) {
  const delta_params *params = PARAMS(delta);
  u32 keys = params->key_dim, all_keys = params->key_heads * keys;
  const f32 *query = BUFFER(const f32, x) + token * (2 * all_keys + params->count) + key_head_of(params, head) * keys;
  const f32 *key = query + all_keys;
  f32x4 alike = {};
  for (u32 at = 0; at < keys; at += 4) {
    u32 lanes = lanes_at(at, keys);
    alike = fma4(load_lanes(key + at, lanes, 0), load_lanes(query + at, lanes, 0), alike);
  }
  u32 gate = token * params->gates_row + head;
  f32 a = BUFFER(const f32, a)[gate + params->a_column] + BUFFER(const f32, dt_bias)[head];
  return (Asked){
    .key = key,
    .query = query,
    .alike = sum_of(alike),
    .key_scale = rsqrt_f32(sum_of_squares(key, keys) + EPS),
    .query_scale = rsqrt_f32((sum_of_squares(query, keys) + EPS) * (f32)keys),
    .write = sigmoid_f32(BUFFER(const f32, b)[gate]),
    .keep = exp_f32(BUFFER(const f32, decay)[head] * softplus(a)),
  };
}

// One token through `vectors` (a constant) vectors of columns of S. What the corrected column gives for a query is
// e^g Sᵀ q + δ kᵀ q, so that S is read once for both products, and once to be written.
// state: rows of value_dim, of which the vectors begin at column 0; values, out: the columns'.
INLINE void take_token(const Asked *asked, u32 keys, f32 *state, u32 stride, u32 vectors, u32 lanes, const f32 *values,
                       f32 *out) {
  f32x4 known[TILE] = {}, told[TILE] = {}, step[TILE];
  for (u32 row = 0; row < keys; row++) {
    f32x4 key = splat(asked->key[row]), query = splat(asked->query[row]);
    for (u32 at = 0; at < vectors; at++) {
      f32x4 held = load_lanes(state + row * stride + 4 * at, lanes, 0);
      known[at] = fma4(held, key, known[at]);
      told[at] = fma4(held, query, told[at]);
    }
  }
  f32 keep = asked->keep, key_scale = asked->key_scale;
  for (u32 at = 0; at < vectors; at++) {
    f32x4 missing = load_lanes(values + 4 * at, lanes, 0) - keep * key_scale * known[at];
    step[at] = asked->write * key_scale * missing;
    store_lanes(out + 4 * at, lanes, (keep * told[at] + step[at] * asked->alike) * asked->query_scale);
  }
  for (u32 row = 0; row < keys; row++) {
    f32x4 key = splat(asked->key[row]);
    for (u32 at = 0; at < vectors; at++) {
      f32 *held = state + row * stride + 4 * at;
      store_lanes(held, lanes, fma4(step[at], key, load_lanes(held, lanes, 0) * keep));
    }
  }
}

// All tokens through some columns of one head; `column` counts those of all heads.
static void take_columns(const Call *call, u32 column, u32 columns) {
  const delta_params *params = PARAMS(delta);
  u32 width = params->value_dim, keys = params->key_dim, head = column / width;
  u32 all_keys = 2 * params->key_heads * keys;
  f32 *state = BUFFER(f32, state) + head * keys * width + column % width;
  if (BUFFER(const i32, start_pos)[0] == 0) {
    for (u32 row = 0; row < keys; row++) __builtin_memset(state + row * width, 0, columns * sizeof(f32));
  }
  for (u32 token = 0; token < params->tokens; token++) {
    Asked asked = asked_of(call, token, head);
    const f32 *values = BUFFER(const f32, x) + token * (all_keys + params->count) + all_keys + column;
    f32 *out = BUFFER(f32, out) + token * params->count + column;
    u32 at = 0;
    for (; at + 4 * TILE <= columns; at += 4 * TILE) {
      take_token(&asked, keys, state + at, width, TILE, 4, values + at, out + at);
    }
    for (; at < columns; at += 4) {
      take_token(&asked, keys, state + at, width, 1, lanes_at(at, columns), values + at, out + at);
    }
  }
}

KERNEL(states_gated_delta, 1) {
  const delta_params *params = PARAMS(delta);
  u32 last = min_u32(share.last * WORKGROUP, params->count);
  for (u32 at = share.first * WORKGROUP, next; at < last; at = next) {
    next = min_u32(last, min_u32(at + WORKGROUP, at - at % params->value_dim + params->value_dim));
    take_columns(call, at, next - at);
  }
}
