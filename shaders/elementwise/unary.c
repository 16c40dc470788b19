// out = f(x), element by element.

#include "elementwise/unary.wgsl.h"
#include "elementwise/fragments/codes_of_one.wgsl.h"
#include "kernel.h"

KERNEL(elementwise_unary, 64) {
  const unary_params *params = PARAMS(unary);
  const f32 *x = BUFFER(const f32, x);
  f32 *out = BUFFER(f32, out);
  u32 last = min_u32(share.last * WORKGROUP, params->count);
  for (u32 at = share.first * WORKGROUP; at < last; at++) out[at] = CONSTANT(CODE) == NEG ? -x[at] : max_f32(x[at], 0.0f);
}
