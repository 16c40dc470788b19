// out[token] = bias + Σ_j weight[:, j] · z[token - (taps - 1) + j], channel by channel; what lies before the first
// token is in `state`, and at position 0 it is nothing. Not all have a bias.
// x: [tokens, row]. gated: a row holds b, c and u; z = b · u, and out is multiplied with c.
// Else it holds z from column `first` on, and out becomes silu(out).
// weight: [width, taps]; state: [taps - 1, width], the last z before the first token; out: [tokens, width].

#include "kernel.h"
#include "maths.h"
#include "rows.h"
#include "states/causal_conv.wgsl.h"

// The past and the present of some neighbouring channels.
typedef struct {
  const causal_conv_params *params;
  const f32 *x;
  const f32 *state;  // null at position 0
  u32 channel;
  u32 lanes;
} Channels;

// `place` is the token's plus taps - 1: places below that are the state's.
INLINE f32x4 z_at(const Channels *own, u32 place) {
  u32 width = own->params->width, held = own->params->taps - 1;
  if (place < held) {
    return own->state ? load_lanes(own->state + place * width + own->channel, own->lanes, 0) : splat(0);
  }
  const f32 *b = own->x + (place - held) * own->params->row + own->params->first + own->channel;
  if (!own->params->gated) return load_lanes(b, own->lanes, 0);
  return load_lanes(b, own->lanes, 0) * load_lanes(b + 2 * width, own->lanes, 0);
}

static void convolve(const Channels *own, const f32 *weight, const f32 *bias, u32 token, f32 *out) {
  u32 width = own->params->width, taps = own->params->taps;
  f32x4 sums = own->params->has_bias ? load_lanes(bias + own->channel, own->lanes, 0) : splat(0);
  for (u32 tap = 0; tap < taps; tap++) {
    f32x4 weights = {};
    for (u32 lane = 0; lane < own->lanes; lane++) weights[lane] = weight[(own->channel + lane) * taps + tap];
    sums = fma4(weights, z_at(own, token + tap), sums);
  }
  if (own->params->gated) {
    sums *= load_lanes(own->x + token * own->params->row + width + own->channel, own->lanes, 0);
  } else {
    sums = silu4(sums);
  }
  store_lanes(out + token * width + own->channel, own->lanes, sums);
}

// Upwards: what is read lies at or above what is written.
static void move_state(const Channels *own, f32 *state) {
  for (u32 place = 0; place + 1 < own->params->taps; place++) {
    f32x4 held = z_at(own, own->params->tokens + place);
    store_lanes(state + place * own->params->width + own->channel, own->lanes, held);
  }
}

KERNEL(states_causal_conv, 16) {
  const causal_conv_params *params = PARAMS(causal_conv);
  f32 *state = BUFFER(f32, state);
  Channels own = {.params = params, .x = BUFFER(const f32, x), .state = BUFFER(const i32, start_pos)[0] ? state : 0};
  u32 last = min_u32(share.last * WORKGROUP, params->count);
  for (u32 at = share.first * WORKGROUP; at < last; at += own.lanes) {
    u32 token = at / params->width;
    own.channel = at % params->width;
    own.lanes = min_u32(lanes_at(at, last), params->width - own.channel);
    if (params->computes) convolve(&own, BUFFER(const f32, weight), BUFFER(const f32, bias), token, BUFFER(f32, out));
    if (params->moves) move_state(&own, state);
  }
}
