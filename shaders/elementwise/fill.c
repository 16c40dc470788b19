// out = first + index * step, in f32 or i32; with step 0, whatever 32 bits `first` has.

#include "elementwise/fill.wgsl.h"
#include "kernel.h"

KERNEL(elementwise_fill, 256) {
  const fill_params *params = PARAMS(fill);
  u32 from = share.first * WORKGROUP, last = min_u32(share.last * WORKGROUP, params->count);
  u32 *out = BUFFER(u32, out);
  u32 first = params->first, step = params->step;
  if (step != 0 && params->is_float) {
    for (u32 at = from; at < last; at++) out[at] = as_bits(as_float(first) + (f32)at * as_float(step));
  } else {
    for (u32 at = from; at < last; at++) out[at] = first + at * step;
  }
}
