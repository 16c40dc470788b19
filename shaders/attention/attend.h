// What masks, scores and sinks do for attention on the CPU; attend_wide.c explains the tiles.

#pragma once

#include "attention/fragments/io.wgsl.h"
#include "kernel.h"

static const f32 MASKED = -2e30f;  // the score of a masked position, as in tiles.wgsl

// The positions that a token sees.
typedef struct {
  u32 first;
  u32 end;
} Range;

// A query row.
typedef struct {
  u32 batch;
  u32 head;
  u32 token;
} Row;

typedef struct {
  Range (*seen)(const Call *call, u32 token);
  // Masks the scores of a row with `count` positions from `first` on; null: all that are seen count.
  void (*apply)(const Call *call, Row row, u32 first, u32 count, f32 *scores);
} Mask;

typedef struct {
  f32 (*query_scale)(const io_params *params);  // queries are multiplied by it
  void (*cap)(const io_params *params, u32 count, f32 *scores);  // null: nothing is left to do
} Score;

typedef struct {
  // The sum of a row's softmax with the sink of its query head.
  f32 (*with_sink)(const Call *call, f32 sum, f32 top, u32 head);
} Sinks;

// The factor of a row's weighted sum; a row whose positions are all masked is zero, as in torch.
INLINE f32 share_of(const Call *call, f32 sum, f32 top, u32 head) {
  if (top == MASKED) return 0.0f;
  return 1.0f / max_f32(PLUG(Sinks, sinks)->with_sink(call, sum, top, head), 1e-30f);
}
