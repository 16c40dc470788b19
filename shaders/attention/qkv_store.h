// The destinations of a token's q, k and v: see fragments/qkv_store.wgsl.

#pragma once

#include "kernel.h"

// The members that Params of every kernel that stores q, k and v have, one after the other:
//   const QkvPlaces *places = (const QkvPlaces *)&params->first_head;
typedef struct {
  u32 first_head;
  u32 q_heads;
  u32 kv_heads;
  u32 width;
  u32 capacity;
  u32 rotated;
  u32 pair_step;
  u32 pair_gap;
  u32 table_width;
  u32 column_gap;
} QkvPlaces;

INLINE u32 turned_pairs(const QkvPlaces *places, u32 head) {
  return head < places->q_heads + places->kv_heads ? places->rotated / 2 : 0;
}

// The dims of a head that are its pair `at`; `turned`: its pairs that turn.
INLINE u32x2 pair_dims(const QkvPlaces *places, u32 at, u32 turned) {
  u32 first = at < turned ? at * places->pair_step : 2 * at;
  return (u32x2){first, first + (at < turned ? places->pair_gap : 1)};
}

// The rows of a pair; those of this kernel begin with first_head.
INLINE u32x2 qkv_pair_rows(const QkvPlaces *places, u32 pair) {
  u32 pairs = places->width / 2;
  u32 head = pair / pairs;
  return pair_dims(places, pair % pairs, turned_pairs(places, places->first_head + head)) + head * places->width;
}

// Where a head of a token is stored: q_out: [tokens, q_heads, width]; caches: [capacity, kv_heads, width].
INLINE f32 *place_of_head(const Call *call, const QkvPlaces *places, u32 token, u32 head) {
  if (head < places->q_heads) return BUFFER(f32, q_out) + (token * places->q_heads + head) * places->width;
  u32 kv_head = head - places->q_heads;
  u32 cache_row = ((u32)*BUFFER(const i32, start_pos) + token) % places->capacity;
  f32 *cache = kv_head < places->kv_heads ? BUFFER(f32, k_cache) : BUFFER(f32, v_cache);
  return cache + (cache_row * places->kv_heads + kv_head % places->kv_heads) * places->width;
}

// Rotates and stores pairs of a head, numbered from its first: [count].
INLINE void turn_and_store(
    const Call *call, const QkvPlaces *places, u32 token, u32 head, u32 at, u32 count, const f32 *firsts,
    const f32 *seconds) {
  f32 *out = place_of_head(call, places, token, head);
  u32 turned = turned_pairs(places, head);
  u32 table_row = ((u32)*BUFFER(const i32, table_start) + token) * places->table_width;
  const f32 *cos = BUFFER(const f32, cos_table) + table_row, *sin = BUFFER(const f32, sin_table) + table_row;
  for (u32 end = at + count; at < end; at++, firsts++, seconds++) {
    f32 first = *firsts, second = *seconds;
    if (at < turned) {
      u32 other = at + places->column_gap;
      first = *firsts * cos[at] - *seconds * sin[at];
      second = *seconds * cos[other] + *firsts * sin[other];
    }
    u32x2 dims = pair_dims(places, at, turned);
    out[dims.x] = first;
    out[dims.y] = second;
  }
}
