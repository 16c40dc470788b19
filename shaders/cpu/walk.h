// A walk over up to eight axes (shaders/shared/walk.wgsl), run by run: a run is what lies along the innermost axis.
//
// A step goes from one run to the next by additions alone, since `steps` are what an axis adds beside all axes
// inside it:
//
//   Walk walk = WALK(params, first);
//   for (u32 at = first, run; at < last; at += run, walk_on(&walk, run)) {
//     run = run_of(&walk, last - at);
//     ...  // elements at to at + run; operand k has them at walk.offsets[k], walk.offsets[k] + walk.steps[0][k], ...
//   }

#pragma once

#include "shared/walk.wgsl.h"
#include "simd.h"

typedef struct {
  const u32x4 *steps;  // [axis], of each operand
  const u32 *sizes;  // [axis], of the axis inside it
  u32 rank;
  u32 places[MAX_AXES];  // along each axis but the outermost
  u32x4 offsets;  // of each operand
} Walk;

#define WALK(params, index) walk_from((params)->steps, (const u32 *)(params)->sizes, (params)->rank, index)

INLINE Walk walk_from(const u32x4 *steps, const u32 *sizes, u32 rank, u32 index) {
  Walk walk = {.steps = steps, .sizes = sizes, .rank = rank, .offsets = index * steps[0]};
  u32 rest = index;
  for (u32 axis = 1; axis < rank; axis++) {
    walk.places[axis - 1] = rest % sizes[axis];
    rest /= sizes[axis];
    walk.offsets += rest * steps[axis];
  }
  return walk;
}

// How many of the next `left` elements lie in the run that the walk is in.
INLINE u32 run_of(const Walk *walk, u32 left) {
  return walk->rank > 1 ? min_u32(left, walk->sizes[1] - walk->places[0]) : left;
}

// Go on by elements of the run, at most to its end.
INLINE void walk_on(Walk *walk, u32 count) {
  walk->offsets += count * walk->steps[0];
  walk->places[0] += count;
  for (u32 axis = 1; axis < walk->rank && walk->places[axis - 1] == walk->sizes[axis]; axis++) {
    walk->places[axis - 1] = 0;
    walk->places[axis] += 1;
    walk->offsets += walk->steps[axis];
  }
}

// Rows of operands, for kernels whose loops want every operand dense: where it is not, its elements are gathered.
enum {
  GATHERED = 512,  // elements at a time: those of three operands fit a core's nearest cache
  LONG_RUN = 64,  // elements that are worth a row of their own
};

typedef struct {
  u32 count;
  const u32 *row[3];  // of each operand; in `gathered` or where the operand is
  u32 gathered[3][GATHERED];
} Rows;

INLINE void gather(u32 *to, const u32 *from, u32 step, u32 count) {
  if (step == 1) {
    for (u32 at = 0; at < count; at++) to[at] = from[at];
  } else {
    for (u32 at = 0; at < count; at++) to[at] = from[at * step];
  }
}

// Take the rows of the next elements, at most `left`, and go on behind them.
static inline void take_rows(Walk *walk, const u32 *const *operands, u32 count, u32 left, Rows *rows) {
  u32 run = run_of(walk, left);
  u32x4 steps = walk->steps[0];
  if (run >= LONG_RUN || run == left) {
    u32 dense = 1;
    for (u32 k = 0; k < count; k++) dense &= steps[k] == 1;
    rows->count = dense ? run : min_u32(run, GATHERED);
    for (u32 k = 0; k < count; k++) {
      const u32 *from = operands[k] + walk->offsets[k];
      if (steps[k] != 1) gather(rows->gathered[k], from, steps[k], rows->count);
      rows->row[k] = steps[k] == 1 ? from : rows->gathered[k];
    }
    walk_on(walk, rows->count);
    return;
  }
  rows->count = min_u32(left, GATHERED);
  for (u32 at = 0; at < rows->count; at += run, walk_on(walk, run)) {
    run = run_of(walk, rows->count - at);
    for (u32 k = 0; k < count; k++) gather(rows->gathered[k] + at, operands[k] + walk->offsets[k], steps[k], run);
  }
  for (u32 k = 0; k < count; k++) rows->row[k] = rows->gathered[k];
}
