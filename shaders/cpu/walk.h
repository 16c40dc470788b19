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

// Rows of operands, for kernels whose loops want every operand dense. What is not is gathered:
//
//   Rows rows;
//   open_rows(&rows, WALK(params, first), first, 2, operands);
//   for (u32 at = first; at < last; at += rows.count) {
//     take_rows(&rows, last - at);
//     ...  // rows.count elements of operand k at rows.row[k]
//   }

enum {
  ROWS = 3,  // operands
  GATHERED = 512,  // elements at a time: those of all operands fit a core's nearest cache
  LONG_RUN = 64,  // elements that are worth a row of their own
};

typedef struct {
  Walk walk;
  u32 operands;
  const u32 *from[ROWS];
  int is_dense[ROWS];  // an operand that has the elements of the output in their order
  int is_single[ROWS];  // an operand of one element
  u32 at;  // the first element of the rows
  u32 count;
  const u32 *row[ROWS];  // in `gathered`, or where the operand is
  u32 gathered[ROWS][GATHERED];
} Rows;

INLINE void gather(u32 *to, const u32 *from, u32 step, u32 count) {
  if (step == 0) {
    u32 value = *from;
    for (u32 at = 0; at < count; at++) to[at] = value;
  } else {
    for (u32 at = 0; at < count; at++) to[at] = from[at * step];
  }
}

static inline void open_rows(Rows *rows, Walk walk, u32 at, u32 operands, const u32 *const *from) {
  rows->walk = walk;
  rows->operands = operands;
  rows->at = at;
  rows->count = 0;
  for (u32 k = 0; k < operands; k++) {
    u32 step = walk.steps[0][k], jumps = 0;
    for (u32 axis = 1; axis < walk.rank; axis++) jumps |= walk.steps[axis][k];
    rows->from[k] = from[k];
    rows->is_dense[k] = step == 1 && !jumps;
    rows->is_single[k] = step == 0 && !jumps;
    if (rows->is_single[k]) gather(rows->gathered[k], from[k], 0, GATHERED);
  }
}

// Gather elements of operand k over many short runs, from where the walk is.
static inline void gather_runs(Walk walk, u32 k, const u32 *from, u32 *to, u32 count) {
  u32 offset = walk.offsets[k], step = walk.steps[0][k], place = walk.places[0], size = walk.sizes[1];
  for (u32 at = 0; at < count; at++) {
    to[at] = from[offset];
    offset += step;
    if (++place < size) continue;
    place = 0;
    for (u32 axis = 1; axis < walk.rank; axis++) {
      offset += walk.steps[axis][k];
      if (axis + 1 == walk.rank || ++walk.places[axis] < walk.sizes[axis + 1]) break;
      walk.places[axis] = 0;
    }
  }
}

// Take the rows of the next elements, at most `left`.
static inline void take_rows(Rows *rows, u32 left) {
  Walk *walk = &rows->walk;
  rows->at += rows->count;
  u32 run = run_of(walk, left);
  int is_long = run >= LONG_RUN || run == left, has_gaps = !is_long;
  for (u32 k = 0; k < rows->operands; k++) has_gaps |= walk->steps[0][k] != 1;
  rows->count = min_u32(is_long ? run : left, has_gaps ? GATHERED : run);
  for (u32 k = 0; k < rows->operands; k++) {
    u32 step = walk->steps[0][k], *gathered = rows->gathered[k];
    const u32 *from = rows->from[k];
    rows->row[k] = gathered;
    if (rows->is_dense[k]) rows->row[k] = from + rows->at;
    else if (step == 1 && is_long) rows->row[k] = from + walk->offsets[k];
    else if (rows->is_single[k]) continue;  // gathered once and for all
    else if (is_long) gather(gathered, from + walk->offsets[k], step, rows->count);
    else gather_runs(*walk, k, from, gathered, rows->count);
  }
  if (is_long) walk_on(walk, rows->count);
  else *walk = walk_from(walk->steps, walk->sizes, walk->rank, rows->at + rows->count);
}
