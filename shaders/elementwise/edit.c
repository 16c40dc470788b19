// out = x + gain * x + bias in the rows of a span of positions, x in others. x, out: [tokens, width]; gain, bias:
// [rows, width], of which the first row is for the span's first position; a single row is for all of them.

#include "elementwise/edit.wgsl.h"
#include "kernel.h"

KERNEL(elementwise_edit, 64) {
  const edit_params *params = PARAMS(edit);
  const f32 *x = BUFFER(const f32, x), *gain = BUFFER(const f32, gain), *bias = BUFFER(const f32, bias);
  const i32 *span = BUFFER(const i32, span);
  f32 *out = BUFFER(f32, out);
  i32 start = *BUFFER(const i32, start_pos);
  u32 last = min_u32(share.last * WORKGROUP, params->count);
  for (u32 at = share.first * WORKGROUP, run; at < last; at += run) {
    u32 column = at % params->width;
    run = min_u32(params->width - column, last - at);
    i32 position = start + (i32)(at / params->width);
    if (position < span[0] || position >= span[1]) {
      __builtin_memcpy(out + at, x + at, run * sizeof(f32));
      continue;
    }
    u32 place = min_u32((u32)(position - span[0]), params->rows - 1) * params->width + column;
    for (u32 i = 0; i < run; i++) {
      out[at + i] = x[at + i] + gain[place + i] * x[at + i] + bias[place + i];
    }
  }
}
