// out = x with up to three of its axes looked up in index tensors, along a walk over the output's axes. An index
// below 0 counts from the end; all are clamped.

#include "copies/index.wgsl.h"
#include "kernel.h"
#include "walk.h"

KERNEL(copies_index, 64) {
  const index_params *params = PARAMS(index);
  u32 begin = share.first * WORKGROUP, last = min_u32(share.last * WORKGROUP, params->count);
  const u32 *x = BUFFER(const u32, x);
  const i32 *indices[] = {BUFFER(const i32, first), BUFFER(const i32, second), BUFFER(const i32, third)};
  u32 *out = BUFFER(u32, out);
  Walk walk = WALK(params, begin);
  u32x4 steps = walk.steps[0];
  int is_row = steps.x == 1 && !(steps.y | steps.z | steps.w);  // the indices are the same for a whole run
  for (u32 at = begin, run; at < last; at += run, walk_on(&walk, run)) {
    run = run_of(&walk, last - at);
    for (u32 k = 0; k < (is_row ? 1 : run); k++) {
      u32x4 offsets = walk.offsets + k * steps;
      u32 source = offsets.x;
      for (u32 axis = 0; axis < 3; axis++) {
        i32 given = indices[axis][offsets[axis + 1]], size = params->indexed_sizes[axis];
        i32 found = clamp_i32(given < 0 ? given + size : given, 0, size - 1);
        source += (u32)found * params->indexed_strides[axis];
      }
      if (is_row) copy_words(out + at, x + source, run);
      else out[at + k] = x[source];
    }
  }
}
