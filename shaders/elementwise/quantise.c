// quantised = clamp(round(x * inverse_scale) + zero_point, quant_min, quant_max), four bytes a word. Infinities are
// the ends of the range; NaN is 0.

#include "elementwise/fragments/elements.h"
#include "elementwise/quantise.wgsl.h"
#include "kernel.h"

INLINE u32x4 quantise4(f32x4 x, const quantise_params *params) {
  f32x4 value = round4(x * params->inverse_scale) + params->zero_point;
  value = at_most4(at_least4(value, params->quant_min), params->quant_max);
  return (u32x4)wasm_i32x4_trunc_sat_f32x4((v128_t)value) & 0xff;  // of NaN: 0
}

KERNEL(elementwise_quantise, 32) {
  const quantise_params *params = PARAMS(quantise);
  const u32 *x = BUFFER(const u32, x);
  u32 *quantised = BUFFER(u32, quantised);
  u32 last = min_u32(share.last * WORKGROUP, ceil_div(params->count, BYTES));
  for (u32 word = share.first * WORKGROUP; word < last; word++) {
    u32 left = params->count - BYTES * word;
    u32x4 bytes = quantise4((f32x4)load_up_to_4(x + BYTES * word, left), params);
    for (u32 lane = left; lane < BYTES; lane++) bytes[lane] = 0;
    quantised[word] = bytes.x | bytes.y << 8 | bytes.z << 16 | bytes.w << 24;
  }
}
