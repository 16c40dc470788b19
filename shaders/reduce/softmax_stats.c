// For long rows: the largest element, and the sum of exp(element - largest), of each part of a row.
// x: [outer, width, inner]; stats: [outer, parts, inner] pairs. A second pass makes one pair of the pairs that
// the parts gave.

#include "kernel.h"
#include "maths.h"
#include "reduce/softmax_stats.wgsl.h"
#include "reduce/stretch.h"
#include "rows.h"

// Up to four parts side by side, `step` from one element to the next.
static void take_elements(const f32 *x, u32 rounds, u32 step, u32 lanes, f32x2 *stats) {
  u32 end = rounds * step;
  f32x4 largest = load_lanes(x, lanes, 0), sums = {};
  for (u32 at = step; at < end; at += step) largest = max4(largest, load_lanes(x + at, lanes, 0));
  for (u32 at = 0; at < end; at += step) sums += exp4(load_lanes(x + at, lanes, 0) - largest);
  for (u32 lane = 0; lane < lanes; lane++) stats[lane] = (f32x2){largest[lane], sums[lane]};
}

static f32x2 join_pairs(const f32x2 *pairs, u32 rounds, u32 step) {
  f32 largest = pairs[0].x, sum = 0;
  for (u32 round = 1; round < rounds; round++) largest = max_f32(largest, pairs[round * step].x);
  for (u32 round = 0; round < rounds; round++) {
    f32x2 pair = pairs[round * step];
    sum += pair.y * exp_f32(pair.x - largest);
  }
  return (f32x2){largest, sum};
}

KERNEL(reduce_softmax_stats, 1) {
  const softmax_stats_params *params = PARAMS(softmax_stats);
  const f32 *x = BUFFER(const f32, x);
  f32x2 *stats = BUFFER(f32x2, stats);
  u32 last = min_u32(share.last * WORKGROUP, params->count);
  Stretch stretch = {.first = share.first * WORKGROUP};
  while (next_stretch(&stretch, last, params->width, params->inner, params->parts)) {
    f32x2 *results = stats + stretch.first;
    if (CONSTANT(SECOND_PASS)) {
      const f32x2 *pairs = (const f32x2 *)x + stretch.from;
      for (u32 at = 0; at < stretch.results; at++) results[at] = join_pairs(pairs + at, stretch.rounds, stretch.step);
      continue;
    }
    for (u32 at = 0; at < stretch.results; at += 4) {
      u32 lanes = lanes_at(at, stretch.results);
      take_elements(x + stretch.from + at, stretch.rounds, stretch.step, lanes, results + at);
    }
  }
}
