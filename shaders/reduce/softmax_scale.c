// For long rows: softmax, or its logarithm, of x: [outer, width, inner] from stats: [outer, inner], each row's
// largest element and sum.

#include "kernel.h"
#include "maths.h"
#include "reduce/softmax_scale.wgsl.h"
#include "rows.h"

// A stretch of one row, whose logarithm is taken once.
static void scale_row(const f32 *x, u32 count, f32x2 stats, f32 *out, int is_log) {
  f32 scale = 1.0f / stats.y, log_sum = is_log ? log_f32(stats.y) : 0;
  for (u32 at = 0; at < count; at += 4) {
    u32 lanes = lanes_at(at, count);
    f32x4 shifted = load_lanes(x + at, lanes, 0) - stats.x;
    store_lanes(out + at, lanes, is_log ? shifted - log_sum : exp4(shifted) * scale);
  }
}

// Neighbours in different rows.
static void scale_columns(const f32 *x, u32 count, const f32x2 *stats, f32 *out, int is_log) {
  for (u32 at = 0; at < count; at += 4) {
    u32 lanes = lanes_at(at, count);
    f32x4 largest = {}, of_sums = {};
    for (u32 lane = 0; lane < lanes; lane++) {
      f32 sum = stats[at + lane].y;
      largest[lane] = stats[at + lane].x;
      of_sums[lane] = is_log ? log_f32(sum) : 1.0f / sum;
    }
    f32x4 shifted = load_lanes(x + at, lanes, 0) - largest;
    store_lanes(out + at, lanes, is_log ? shifted - of_sums : exp4(shifted) * of_sums);
  }
}

KERNEL(reduce_softmax_scale, 16) {
  const softmax_scale_params *params = PARAMS(softmax_scale);
  const f32 *x = BUFFER(const f32, x);
  f32 *out = BUFFER(f32, out);
  const f32x2 *stats = BUFFER(const f32x2, stats);
  int is_log = CONSTANT(IS_LOG);
  u32 inner = params->inner, length = inner == 1 ? params->width : inner;  // of neighbours that are alike
  u32 last = min_u32(share.last * WORKGROUP, params->count);
  for (u32 at = share.first * WORKGROUP, next; at < last; at = next) {
    next = min_u32(last, at - at % length + length);
    const f32x2 *own = stats + at / (params->width * inner) * inner + at % inner;
    if (inner == 1) {
      scale_row(x + at, next - at, *own, out + at, is_log);
    } else {
      scale_columns(x + at, next - at, own, out + at, is_log);
    }
  }
}
