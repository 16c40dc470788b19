// out = (x - mean) * rstd * weight + bias, row by row, with rstd = rsqrt(variance + eps).
// x, out: [rows, width]; means, rstds: [rows]. A row has width / inner channels of `inner` neighbours each, and
// every `group_count` rows have all. A workgroup is a row.

#include "kernel.h"
#include "reduce/normalise.wgsl.h"
#include "rows.h"

typedef struct {
  f32 mean;
  f32 rstd;
} Moments;

// The differences from a mean that is a little off, as long sums are, do not add up to zero: what they come to
// mends both the mean and the variance.
static Moments moments_of(const f32 *x, u32 width, f32 eps) {
  f32 near = sum_of_row(x, width) / (f32)width;
  f32x4 rests = {}, squares = {};
  for (u32 at = 0; at < width; at += 4) {
    f32x4 differences = load_lanes(x + at, lanes_at(at, width), near) - near;
    rests += differences;
    squares = fma4(differences, differences, squares);
  }
  f32 off = sum_of(rests) / (f32)width;
  return (Moments){near + off, rsqrt_f32(sum_of(squares) / (f32)width - off * off + eps)};
}

KERNEL(reduce_normalise, 16) {
  const normalise_params *params = PARAMS(normalise);
  u32 width = params->width, inner = params->inner, channels = width / inner;
  u32 last = min_u32(share.last, params->rows);
  for (u32 row = share.first; row < last; row++) {
    const f32 *x = BUFFER(const f32, x) + row * width;
    f32 *out = BUFFER(f32, out) + row * width;
    u32 first_channel = row % params->group_count * channels;
    const f32 *weight = params->has_weight ? BUFFER(const f32, weight) + first_channel : 0;
    const f32 *bias = params->has_bias ? BUFFER(const f32, bias) + first_channel : 0;
    Moments moments = moments_of(x, width, params->eps);
    BUFFER(f32, means)[row] = moments.mean;
    BUFFER(f32, rstds)[row] = moments.rstd;
    if (inner == 1) {
      for (u32 at = 0; at < width; at += 4) {
        u32 lanes = lanes_at(at, width);
        f32x4 values = (load_lanes(x + at, lanes, 0) - moments.mean) * moments.rstd;
        if (weight) values *= load_lanes(weight + at, lanes, 0);
        if (bias) values += load_lanes(bias + at, lanes, 0);
        store_lanes(out + at, lanes, values);
      }
      continue;
    }
    for (u32 channel = 0; channel < channels; channel++) {
      f32 scale = weight ? moments.rstd * weight[channel] : moments.rstd, added = bias ? bias[channel] : 0;
      for (u32 at = channel * inner; at < (channel + 1) * inner; at++) out[at] = (x[at] - moments.mean) * scale + added;
    }
  }
}
