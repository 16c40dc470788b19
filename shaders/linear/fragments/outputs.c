// The outputs of independent rows: with a bias and a residual, times factors, or gating a part of a tensor.

#include "linear/fragments/epilogue.h"
#include "linear/fragments/gate.h"
#include "linear/fragments/output_bias.wgsl.h"
#include "linear/fragments/output_part.wgsl.h"
#include "linear/fragments/output_residual.wgsl.h"
#include "linear/fragments/output_scaled.wgsl.h"

// out[at] = sums[at] + bias[at] + residual[at]; each of the two may be null.
INLINE void store_row(f32 *out, const f32 *sums, const f32 *bias, const f32 *residual, u32 count) {
  for (u32 at = 0; at < count; at++) {
    f32 value = sums[at];
    if (bias) value += bias[at];
    if (residual) value += residual[at];
    out[at] = value;
  }
}

static void residual_store(const Call *call, u32 token, u32 row, u32 count, f32 *sums) {
  const output_residual_params *params = PARAMS(output_residual);
  u32 first = params->first_row + row, at = token * params->stride + first;
  const f32 *bias = params->has_bias ? BUFFER(const f32, bias) + token * params->bias_stride + first : 0;
  const f32 *residual = params->has_residual ? BUFFER(const f32, residual) + at : 0;
  store_row(BUFFER(f32, out) + at, sums, bias, residual, count);
}

static void bias_store(const Call *call, u32 token, u32 row, u32 count, f32 *sums) {
  const output_bias_params *params = PARAMS(output_bias);
  u32 first = params->first_row + row;
  const f32 *bias = params->has_bias ? BUFFER(const f32, bias) + token * params->bias_stride + first : 0;
  store_row(BUFFER(f32, out) + token * params->stride + first, sums, bias, 0, count);
}

static void part_store(const Call *call, u32 token, u32 row, u32 count, f32 *sums) {
  const output_part_params *params = PARAMS(output_part);
  const f32 *part = BUFFER(const f32, parts) + token * params->part_stride + params->first_part + row;
  PLUG(Gate, gate)->row(sums, part, BUFFER(f32, out) + token * params->rows + row, count);
}

static void scaled_store(const Call *call, u32 token, u32 row, u32 count, f32 *sums) {
  const output_scaled_params *params = PARAMS(output_scaled);
  u32 first = params->first_row + row;
  const f32 *factors = BUFFER(const f32, factors) + first;
  f32 *out = BUFFER(f32, out) + token * params->stride + first;
  for (u32 at = 0; at < count; at++) out[at] = sums[at] * factors[at];
}

FRAGMENT(Output, linear_fragments_output_residual) = {residual_store};
FRAGMENT(Output, linear_fragments_output_bias) = {bias_store};
FRAGMENT(Output, linear_fragments_output_scaled) = {scaled_store};
FRAGMENT(Output, linear_fragments_output_part) = {part_store};
