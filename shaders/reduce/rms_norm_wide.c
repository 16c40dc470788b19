// out = (x * rsqrt(mean(x²) + eps) * weight + residual) * factor, row by row, each of the three where there is
// one. x, residual, out: [rows, width]; weight: [width], of any width here. A workgroup is a row.

#include "kernel.h"
#include "reduce/rms_norm_wide.wgsl.h"
#include "rows.h"

KERNEL(reduce_rms_norm_wide, 16) {
  const rms_norm_wide_params *params = PARAMS(rms_norm_wide);
  u32 width = params->width;
  const f32 *weight = params->has_weight ? BUFFER(const f32, weight) : 0;
  f32x4 factor = splat(params->has_factor ? BUFFER(const f32, factor)[0] : 1.0f);
  u32 last = min_u32(share.last, params->rows);
  for (u32 row = share.first; row < last; row++) {
    const f32 *x = BUFFER(const f32, x) + row * width;
    const f32 *residual = params->has_residual ? BUFFER(const f32, residual) + row * width : 0;
    f32 *out = BUFFER(f32, out) + row * width;
    f32x4 scale = splat(rsqrt_f32(sum_of_squares(x, width) / (f32)width + params->eps));
    for (u32 at = 0; at < width; at += 4) {
      u32 lanes = lanes_at(at, width);
      f32x4 values = load_lanes(x + at, lanes, 0) * scale;
      if (weight) values *= load_lanes(weight + at, lanes, 0);
      if (residual) values += load_lanes(residual + at, lanes, 0);
      store_lanes(out + at, lanes, values * factor);
    }
  }
}
