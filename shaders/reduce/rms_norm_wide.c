// out = (x * rsqrt(mean(x²) + eps) * weight + residual) * factor, row by row, each of the three where there is
// one. x, residual, out: [rows, width]; weight: [width], of any width here. A workgroup is a row.

#include "kernel.h"
#include "reduce/rms_norm_wide.wgsl.h"
#include "rows.h"

typedef struct {
  const f32 *x;
  const f32 *weight;    // or null
  const f32 *residual;  // or null
  f32 *out;
  f32 scale;
  f32 factor;
} Row;

INLINE void finish(const Row *row, u32 at, u32 lanes) {
  f32x4 values = load_lanes(row->x + at, lanes, 0) * row->scale;
  if (row->weight) values *= load_lanes(row->weight + at, lanes, 0);
  if (row->residual) values += load_lanes(row->residual + at, lanes, 0);
  store_lanes(row->out + at, lanes, values * row->factor);
}

KERNEL(reduce_rms_norm_wide, 16) {
  const rms_norm_wide_params *params = PARAMS(rms_norm_wide);
  u32 width = params->width;
  u32 last = min_u32(share.last, params->rows);
  for (u32 number = share.first; number < last; number++) {
    u32 first = number * width;
    Row row = {
      .x = BUFFER(const f32, x) + first,
      .weight = params->has_weight ? BUFFER(const f32, weight) : 0,
      .residual = params->has_residual ? BUFFER(const f32, residual) + first : 0,
      .out = BUFFER(f32, out) + first,
      .factor = params->has_factor ? BUFFER(const f32, factor)[0] : 1,
    };
    row.scale = rsqrt_f32(sum_of_squares(row.x, width) / (f32)width + params->eps);
    u32 at = 0;
    for (; at + 4 <= width; at += 4) finish(&row, at, 4);
    if (at < width) finish(&row, at, width - at);
  }
}
