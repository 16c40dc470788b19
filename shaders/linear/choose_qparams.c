// The affine quantisation of each row: see choose_qparams.wgsl.
// x: [rows, width]; scales: [rows]; zero_points: [rows], bytes or words.

#include "kernel.h"
#include "linear/choose_qparams.wgsl.h"
#include "maths.h"

KERNEL(linear_choose_qparams, 1) {
  const choose_qparams_params *params = PARAMS(choose_qparams);
  u32 last = min_u32(share.last * WORKGROUP * ROWS, params->rows);
  for (u32 row = share.first * WORKGROUP * ROWS; row < last; row++) {
    const f32 *x = BUFFER(const f32, x) + row * params->width;
    f32 smallest = 0.0f, largest = 0.0f;
    for (u32 at = 0; at < params->width; at++) {
      smallest = min_f32(smallest, x[at]);
      largest = max_f32(largest, x[at]);
    }
    f32 scale = max_f32((largest - smallest) / (params->quant_max - params->quant_min), params->eps);
    BUFFER(f32, scales)[row] = scale;
    f32 zero = params->quant_min - round_f32(smallest / scale);
    i32 whole = (i32)min_f32(max_f32(zero, params->quant_min), params->quant_max);
    if (CONSTANT(ZEROS_ARE_BYTES)) {
      BUFFER(i8, zero_points)[row] = (i8)whole;
    } else {
      BUFFER(i32, zero_points)[row] = whole;
    }
  }
}
