// Softmax, or its logarithm, along the middle of x: [outer, width, inner].

#include "kernel.h"
#include "maths.h"
#include "reduce/softmax.wgsl.h"
#include "reduce/stretch.h"
#include "rows.h"

INLINE f32x4 store_weights(const f32 *x, u32 lanes, f32 largest, f32 *out) {
  f32x4 weights = exp4(load_lanes(x, lanes, -__builtin_inff()) - largest);
  store_lanes(out, lanes, weights);
  return weights;
}

static void softmax_row(const f32 *x, u32 width, f32 *out, int is_log) {
  f32 largest = largest_of_row(x, width);
  f32x4 sums = {};
  if (is_log) {
    for (u32 at = 0; at < width; at += 4) {
      sums += exp4(load_lanes(x + at, lanes_at(at, width), -__builtin_inff()) - largest);
    }
    f32 log_sum = log_f32(sum_of(sums));
    for (u32 at = 0; at < width; at++) out[at] = (x[at] - largest) - log_sum;
    return;
  }
  u32 at = 0;
  for (; at + 4 <= width; at += 4) sums += store_weights(x + at, 4, largest, out + at);
  if (at < width) sums += store_weights(x + at, width - at, largest, out + at);
  f32 scale = 1.0f / sum_of(sums);
  for (at = 0; at < width; at++) out[at] *= scale;
}

// Up to four columns side by side, `step` from one element to the next.
static void softmax_columns(const f32 *x, u32 width, u32 step, u32 lanes, f32 *out, int is_log) {
  u32 end = width * step;
  f32x4 largest = load_lanes(x, lanes, 0), sums = {};
  for (u32 at = step; at < end; at += step) largest = max4(largest, load_lanes(x + at, lanes, 0));
  for (u32 at = 0; at < end; at += step) {
    f32x4 weights = exp4(load_lanes(x + at, lanes, 0) - largest);
    sums += weights;
    if (!is_log) store_lanes(out + at, lanes, weights);
  }
  f32x4 scales = 1.0f / sums, log_sums = {};
  for (u32 lane = 0; is_log && lane < lanes; lane++) log_sums[lane] = log_f32(sums[lane]);
  for (u32 at = 0; at < end; at += step) {
    f32x4 values = load_lanes((is_log ? x : out) + at, lanes, 0);
    store_lanes(out + at, lanes, is_log ? (values - largest) - log_sums : values * scales);
  }
}

KERNEL(reduce_softmax, 4) {
  const softmax_params *params = PARAMS(softmax);
  const f32 *x = BUFFER(const f32, x);
  f32 *out = BUFFER(f32, out);
  int is_log = CONSTANT(IS_LOG);
  u32 last = min_u32(share.last * WORKGROUP, params->count);
  Stretch stretch = {.first = share.first * WORKGROUP};
  while (next_stretch(&stretch, last, params->width, params->inner, 1)) {
    u32 from = stretch.from;
    if (stretch.step == 1) {
      softmax_row(x + from, params->width, out + from, is_log);
      continue;
    }
    for (u32 at = 0; at < stretch.results; at += 4) {
      u32 lanes = lanes_at(at, stretch.results);
      softmax_columns(x + from + at, params->width, stretch.step, lanes, out + from + at, is_log);
    }
  }
}
