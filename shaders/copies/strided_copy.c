// out[destination] = x[source] along a walk. `start` is a live position along one axis of x.

#include "copies/strided_copy.wgsl.h"
#include "kernel.h"
#include "walk.h"

KERNEL(copies_strided_copy, 128) {
  const strided_copy_params *params = PARAMS(strided_copy);
  u32 first = share.first * WORKGROUP, last = min_u32(share.last * WORKGROUP, params->count);
  const u32 *x = BUFFER(const u32, x);
  u32 *out = BUFFER(u32, out);
  u32 source_at = params->source_at + *BUFFER(const u32, start) * params->start_stride;
  Walk walk = WALK(params, first);
  u32 from_step = walk.steps[0].x, to_step = walk.steps[0].y;
  for (u32 at = first, run; at < last; at += run, walk_on(&walk, run)) {
    run = run_of(&walk, last - at);
    const u32 *from = x + (u32)(source_at + walk.offsets.x);
    u32 *to = out + (u32)(params->destination_at + walk.offsets.y);
    if (from_step == 1 && to_step == 1) {
      copy_words(to, from, run);
    } else {
      for (u32 k = 0; k < run; k++) to[k * to_step] = from[k * from_step];
    }
  }
}
