// out = activation(gate) * one part of each row of parts. gate, out: [rows, width]; parts: [rows, stride], of which
// the columns from `first` on are taken.

#include "elementwise/gated_part.wgsl.h"
#include "kernel.h"
#include "linear/fragments/gate.h"

KERNEL(elementwise_gated_part, 64) {
  const gated_part_params *params = PARAMS(gated_part);
  const f32 *gate = BUFFER(const f32, gate), *parts = BUFFER(const f32, parts) + params->first;
  f32 *out = BUFFER(f32, out);
  u32 last = min_u32(share.last * WORKGROUP, params->count);
  for (u32 at = share.first * WORKGROUP, run; at < last; at += run) {
    u32 row = at / params->width, column = at % params->width;
    run = min_u32(params->width - column, last - at);
    PLUG(Gate, gate)->row(gate + at, parts + row * params->stride + column, out + at, run);
  }
}
