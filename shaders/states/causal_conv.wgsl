// out[token] = bias + Σ_j weight[:, j] · z[token - (taps - 1) + j], channel by channel; what lies before the
// first token is in `state`, and at position 0 it is nothing. Not all have a bias.
// x: [tokens, row]. gated: a row holds b, c and u; z = b · u, and out is multiplied with c.
// Else it holds z from column `first` on, and out becomes silu(out).
// weight: [width, taps]; state: [taps - 1, width], the last z before the first token; out: [tokens, width].
// The state moves on once nobody needs the old one: with one token each invocation does it for its
// channel, with more a second dispatch does (computes = 0).
// needs: nothing

struct Params {
  count: u32,
  tokens: u32,
  width: u32,
  taps: u32,
  gated: u32,
  row: u32,
  first: u32,
  has_bias: u32,
  computes: u32,
  moves: u32,
}

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> state: array<f32>;
@group(0) @binding(4) var<uniform> start_pos: vec4i;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

// `place` is the token's plus taps - 1: places below that are the state's.
fn z(place: u32, channel: u32) -> f32 {
  let held = params.taps - 1u;
  if (place < held) {
    if (start_pos.x == 0) {
      return 0.0;
    }
    return state[place * params.width + channel];
  }
  let at = (place - held) * params.row + params.first + channel;
  if (params.gated == 0u) {
    return x[at];
  }
  return x[at] * x[at + 2u * params.width];
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = (group.y * groups.x + group.x) * WORKGROUP + lane;
  if (index >= params.count) {
    return;
  }
  let token = index / params.width;
  let channel = index % params.width;
  if (params.computes != 0u) {
    var sum = 0.0;
    if (params.has_bias != 0u) {
      sum = bias[channel];
    }
    for (var tap = 0u; tap < params.taps; tap++) {
      sum += weight[channel * params.taps + tap] * z(token + tap, channel);
    }
    if (params.gated != 0u) {
      sum *= x[token * params.row + params.width + channel];
    } else {
      sum /= 1.0 + exp(-sum);
    }
    out[index] = sum;
  }
  if (params.moves != 0u) {
    // Upwards: what is read lies at or above what is written.
    for (var place = 0u; place + 1u < params.taps; place++) {
      state[place * params.width + channel] = z(params.tokens + place, channel);
    }
  }
}
