// Sum, maximum or minimum along the middle of x: [outer, width, inner] into out: [outer, parts, inner].

#include "kernel.h"
#include "reduce/element.h"
#include "reduce/reduce.wgsl.h"
#include "reduce/stretch.h"

enum { AT_ONCE = 64 };  // columns whose results stay in registers and the nearest cache

// Each column's elements joined: out[column] = join of x[round * step + column].
#define COLUMNS(name, type, join) \
  static void name(const void *x_, u32 step, u32 rounds, u32 columns, void *out_) { \
    const type *x = x_; \
    type *out = out_; \
    type results[AT_ONCE]; \
    for (u32 column = 0; column < columns; column++) results[column] = x[column]; \
    for (u32 round = 1; round < rounds; round++) { \
      x += step; \
      for (u32 column = 0; column < columns; column++) { \
        type a = results[column], b = x[column]; \
        results[column] = join; \
      } \
    } \
    for (u32 column = 0; column < columns; column++) out[column] = results[column]; \
  }

COLUMNS(sum_f32, f32, a + b)
COLUMNS(largest_f32, f32, a > b ? a : b)
COLUMNS(least_f32, f32, a < b ? a : b)
COLUMNS(sum_i32, i32, (i32)((u32)a + (u32)b))
COLUMNS(largest_i32, i32, a > b ? a : b)
COLUMNS(least_i32, i32, a < b ? a : b)

typedef void Join(const void *x, u32 step, u32 rounds, u32 columns, void *out);
static Join *const joins[2][3] = {
  {[SUM] = sum_f32, [MAXIMUM] = largest_f32, [MINIMUM] = least_f32},
  {[SUM] = sum_i32, [MAXIMUM] = largest_i32, [MINIMUM] = least_i32},
};

// A row of neighbours is cut into columns, which are joined first, and then one with the other.
static void join_row(Join *join, const u32 *x, u32 width, u32 *out) {
  u32 parts[2 * AT_ONCE];
  u32 columns = width >= AT_ONCE ? AT_ONCE : 1;
  u32 rounds = width / columns, rest = width % columns;
  join(x, columns, rounds, columns, parts);
  for (u32 at = 0; at < rest; at++) parts[columns + at] = x[rounds * columns + at];
  join(parts, 1, columns + rest, 1, out);
}

KERNEL(reduce_reduce, 4) {
  const reduce_params *params = PARAMS(reduce);
  int is_integer = PLUG(Element, element)->is_integer;
  const u32 *x = BUFFER(const u32, x);
  u32 *out = BUFFER(u32, out);
  Join *join = joins[is_integer][CONSTANT(CODE)];
  u32 last = min_u32(share.last * WORKGROUP, params->count);
  Stretch stretch = {.first = share.first * WORKGROUP};
  while (next_stretch(&stretch, last, params->width, params->inner, params->parts)) {
    if (stretch.step == 1) {
      join_row(join, x + stretch.from, stretch.rounds, out + stretch.first);
    } else {
      for (u32 at = 0; at < stretch.results; at += AT_ONCE) {
        join(x + stretch.from + at, stretch.step, stretch.rounds, min_u32(stretch.results - at, AT_ONCE), out + stretch.first + at);
      }
    }
    if (!is_integer && params->scale != 1.0f) {
      for (u32 at = stretch.first; at < stretch.first + stretch.results; at++) out[at] = as_bits(as_float(out[at]) * params->scale);
    }
  }
}
