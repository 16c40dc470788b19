// out = out * rsqrt(mean(out²) + eps) * weight * silu(z), row by row and in place.
// out, z: [rows, width]; weight: [width]. A workgroup is a row.

#include "kernel.h"
#include "maths.h"
#include "rows.h"
#include "states/fragments/gated_rows.wgsl.h"

KERNEL(states_gated_norm_wide, 16) {
  const gated_rows_params *params = PARAMS(gated_rows);
  const f32 *weight = BUFFER(const f32, weight);
  u32 width = params->width;
  u32 last = min_u32(share.last, params->rows);
  for (u32 row = share.first; row < last; row++) {
    const f32 *z = BUFFER(const f32, z) + row * width;
    f32 *out = BUFFER(f32, out) + row * width;
    f32 scale = rsqrt_f32(sum_of_squares(out, width) / (f32)width + params->eps);
    for (u32 at = 0; at < width; at += 4) {
      u32 lanes = lanes_at(at, width);
      f32x4 factor = scale * load_lanes(weight + at, lanes, 0) * silu4(load_lanes(z + at, lanes, 0));
      store_lanes(out + at, lanes, load_lanes(out + at, lanes, 0) * factor);
    }
  }
}
