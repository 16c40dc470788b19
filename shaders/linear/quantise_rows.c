// x rounded to 8 bits and back, with a scale and a zero point for each row: see quantise_rows.wgsl.
// x, out: [rows, 4 quads]; scales: [rows]; zero_points: [rows], bytes or words.

#include "kernel.h"
#include "linear/quantise_rows.wgsl.h"
#include "maths.h"

KERNEL(linear_quantise_rows, 16) {
  const quantise_rows_params *params = PARAMS(quantise_rows);
  const f32 *x = BUFFER(const f32, x);
  f32 *out = BUFFER(f32, out);
  u32 last = min_u32(share.last * WORKGROUP, params->rows * params->quads);
  for (u32 at = share.first * WORKGROUP, run; at < last; at += run) {
    u32 row = at / params->quads;
    run = min_u32(last, (row + 1) * params->quads) - at;
    f32 scale = BUFFER(const f32, scales)[row], inverse = 1.0f / scale;  // as torchao does
    i32 point = CONSTANT(ZEROS_ARE_BYTES) ? BUFFER(const i8, zero_points)[row] : BUFFER(const i32, zero_points)[row];
    f32 zero = (f32)point;
    for (u32 quad = at; quad < at + run; quad++) {
      f32x4 whole = at_least4(at_most4(round4(load_f32x4(x + 4 * quad) * inverse) + zero, 127.0f), -128.0f);
      store_f32x4(out + 4 * quad, (whole - zero) * scale);
    }
  }
}
