// out[i] = weight[indices[i]]. weight: [rows, columns]; indices: [count]; out: [count, columns].

#include "copies/embedding.wgsl.h"
#include "kernel.h"

KERNEL(copies_embedding, 256) {
  const embedding_params *params = PARAMS(embedding);
  const f32 *weight = BUFFER(const f32, weight);
  const i32 *indices = BUFFER(const i32, indices);
  f32 *out = BUFFER(f32, out);
  u32 columns = params->columns;
  u32 last = min_u32(share.last * WORKGROUP, params->count * columns);
  for (u32 at = share.first * WORKGROUP, run; at < last; at += run) {
    u32 column = at % columns;
    u32 row = (u32)clamp_i32(indices[at / columns], 0, (i32)params->rows - 1);
    run = min_u32(columns - column, last - at);
    copy_words(out + at, weight + row * columns + column, run);
  }
}
