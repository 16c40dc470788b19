// out = (quantised - zero_point) * scale, element by element; quantised are bytes.

#include "elementwise/dequantise.wgsl.h"
#include "kernel.h"

KERNEL(elementwise_dequantise, 128) {
  const dequantise_params *params = PARAMS(dequantise);
  const u8 *quantised = BUFFER(const u8, quantised);
  f32 *out = BUFFER(f32, out);
  f32 scale = params->scale, zero_point = params->zero_point;
  u32 last = min_u32(share.last * WORKGROUP, params->count);
  if (CONSTANT(IS_SIGNED)) {
    for (u32 at = share.first * WORKGROUP; at < last; at++) out[at] = ((f32)(i8)quantised[at] - zero_point) * scale;
  } else {
    for (u32 at = share.first * WORKGROUP; at < last; at++) out[at] = ((f32)quantised[at] - zero_point) * scale;
  }
}
