// out = apply(x), element by element; a fragment says how.

#include "elementwise/fragments/elements.h"
#include "elementwise/unary.wgsl.h"
#include "kernel.h"

KERNEL(elementwise_unary, 128) {
  const unary_params *params = PARAMS(unary);
  u32 first = share.first * WORKGROUP, last = min_u32(share.last * WORKGROUP, params->count);
  if (first >= last) return;
  const u32 *x = BUFFER(const u32, x);
  u32 *out = BUFFER(u32, out);
  PLUG(Elements, elements)->apply(CONSTANT(CODE), x + first, out + first, last - first, params->first, params->second);
}
