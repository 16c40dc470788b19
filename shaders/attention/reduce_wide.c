// The reduction of attend_wide.c's splits: a workgroup for each query row.
// sums: [splits, heads, rows, width], width a multiple of four; stats: [splits, heads, rows, 2].

#include "attention/attend.h"
#include "attention/reduce_wide.wgsl.h"
#include "maths.h"

KERNEL(attention_reduce_wide, 64) {
  const reduce_wide_params *params = PARAMS(reduce_wide);
  const f32 *sums = BUFFER(const f32, sums), *stats = BUFFER(const f32, stats);
  u32 width = ceil_div(params->width, 4) * 4, rows = params->heads * params->rows;
  u32 last = min_u32(share.last, rows);
  f32 *total = scratch_of(share.thread);  // [width]
  for (u32 index = share.first; index < last; index++) {
    f32 top = MASKED;
    for (u32 split = 0; split < params->splits; split++) top = max_f32(top, stats[2 * (split * rows + index)]);
    f32 sum = 0.0f;
    for (u32 split = 0; split < params->splits; split++) {
      u32 at = split * rows + index;
      f32 worth = exp_f32(stats[2 * at] - top);
      sum += stats[2 * at + 1] * worth;
      for (u32 dim = 0; dim < width; dim += 4) {
        f32x4 so_far = split ? load_f32x4(total + dim) : splat(0.0f);
        store_f32x4(total + dim, fma4(splat(worth), load_f32x4(sums + at * width + dim), so_far));
      }
    }
    u32 row = index % params->rows, head = index / params->rows;
    u32 q_head = head % params->kv_heads * params->group + row % params->group;
    u32 place = head / params->kv_heads * params->q_batch + row / params->group * params->q_token;
    f32 *out = BUFFER(f32, out) + place + q_head * params->q_head;
    f32 share_of_row = share_of(call, sum, top, q_head);
    for (u32 dim = 0; dim < params->width; dim++) out[dim] = total[dim] * share_of_row;
  }
}
