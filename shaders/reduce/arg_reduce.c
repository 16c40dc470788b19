// Where the largest (or smallest) element along the middle of x: [outer, width, inner] stands, the first one on
// ties, into out: [outer, parts, inner]. A second pass chooses among the places that the parts found.

#include "kernel.h"
#include "reduce/arg_reduce.wgsl.h"
#include "reduce/element.h"
#include "reduce/stretch.h"

enum { AT_ONCE = 64 };

// The rounds in which each column has its best element.
#define COLUMNS(name, type, is_better) \
  static void name(const void *x_, u32 step, u32 rounds, u32 columns, u32 *best_rounds) { \
    const type *x = x_; \
    type best[AT_ONCE]; \
    for (u32 column = 0; column < columns; column++) best[column] = x[column], best_rounds[column] = 0; \
    for (u32 round = 1; round < rounds; round++) { \
      x += step; \
      for (u32 column = 0; column < columns; column++) { \
        int better = x[column] is_better best[column]; \
        best[column] = better ? x[column] : best[column]; \
        best_rounds[column] = better ? round : best_rounds[column]; \
      } \
    } \
  }

COLUMNS(largest_f32, f32, >)
COLUMNS(least_f32, f32, <)
COLUMNS(largest_i32, i32, >)
COLUMNS(least_i32, i32, <)

typedef void Find(const void *x, u32 step, u32 rounds, u32 columns, u32 *best_rounds);
static Find *const finds[2][2] = {{largest_f32, least_f32}, {largest_i32, least_i32}};

static void find_in_parts(const Call *call, Share share, Find *find) {
  const arg_reduce_params *params = PARAMS(arg_reduce);
  const u32 *x = BUFFER(const u32, x);
  u32 *out = BUFFER(u32, out);
  u32 last = min_u32(share.last * WORKGROUP, params->count);
  Stretch stretch = {.first = share.first * WORKGROUP};
  while (next_stretch(&stretch, last, params->width, params->inner, params->parts)) {
    for (u32 at = 0; at < stretch.results; at += AT_ONCE) {
      u32 columns = min_u32(stretch.results - at, AT_ONCE), *places = out + stretch.first + at;
      find(x + stretch.from + at, stretch.step, stretch.rounds, columns, places);
      for (u32 column = 0; column < columns; column++) {
        u32 part = (stretch.first + at + column) / params->inner % params->parts;
        places[column] = part + places[column] * params->parts;
      }
    }
  }
}

// found: [outer, given, inner].
static void choose_place(const Call *call, u32 index, int is_integer) {
  const arg_reduce_params *params = PARAMS(arg_reduce);
  const u32 *x = BUFFER(const u32, x), *found = BUFFER(const u32, found);
  u32 outer = index / params->inner, inner_at = index % params->inner;
  u32 best_place = 0;
  f64 best = 0;  // holds all f32 and i32
  for (u32 round = 0; round < params->given; round++) {
    u32 place = min_u32(found[(outer * params->given + round) * params->inner + inner_at], params->width - 1);
    u32 bits = x[(outer * params->width + place) * params->inner + inner_at];
    f64 value = is_integer ? (f64)(i32)bits : (f64)as_float(bits);
    int is_better = CONSTANT(IS_MIN) ? value < best : value > best;
    if (round == 0 || is_better || (value == best && place < best_place)) best = value, best_place = place;
  }
  BUFFER(u32, out)[index] = best_place;
}

KERNEL(reduce_arg_reduce, 4) {
  int is_integer = PLUG(Element, element)->is_integer;
  if (!CONSTANT(SECOND_PASS)) {
    find_in_parts(call, share, finds[is_integer][CONSTANT(IS_MIN)]);
    return;
  }
  u32 last = min_u32(share.last * WORKGROUP, PARAMS(arg_reduce)->count);
  for (u32 index = share.first * WORKGROUP; index < last; index++) choose_place(call, index, is_integer);
}
