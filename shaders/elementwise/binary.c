// out = combine(a, b) with broadcasting, along a walk over the output's axes; a fragment says how.

#include "elementwise/binary.wgsl.h"
#include "elementwise/fragments/elements.h"
#include "kernel.h"
#include "walk.h"

KERNEL(elementwise_binary, 128) {
  const binary_params *params = PARAMS(binary);
  u32 first = share.first * WORKGROUP, last = min_u32(share.last * WORKGROUP, params->count);
  const Operands *fragment = PLUG(Operands, operands);
  u32 *out = BUFFER(u32, out);
  const u32 *operands[] = {BUFFER(const u32, a), BUFFER(const u32, b)};
  u32x4 steps[MAX_AXES];
  for (u32 axis = 0; axis < params->rank; axis++) steps[axis] = params->steps[axis];
  if (params->b_is_scalar) {  // an operand of one element
    operands[1] = &params->b_scalar;
    for (u32 axis = 0; axis < params->rank; axis++) steps[axis].y = 0;
  }
  Rows rows;
  open_rows(&rows, walk_from(steps, (const u32 *)params->sizes, params->rank, first), first, 2, operands);
  for (u32 at = first; at < last; at += rows.count) {
    take_rows(&rows, last - at);
    fragment->combine(call, rows.row[0], rows.row[1], out + at, rows.count, params->alpha);
  }
}
