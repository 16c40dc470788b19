// out = activation(gate) * up, from sums [tokens, gate | up]; out: [tokens, rows].

#include "kernel.h"
#include "linear/fragments/gate.h"
#include "linear/swiglu.wgsl.h"

KERNEL(linear_swiglu, 16) {
  const swiglu_params *params = PARAMS(swiglu);
  u32 rows = params->rows, last = min_u32(share.last * WORKGROUP, params->count);
  for (u32 at = share.first * WORKGROUP, run; at < last; at += run) {
    run = min_u32(last - at, rows - at % rows);
    const f32 *gate = BUFFER(const f32, sums) + at / rows * 2 * rows + at % rows;
    PLUG(Gate, gate)->row(gate, gate + rows, BUFFER(f32, out) + at, run);
  }
}
