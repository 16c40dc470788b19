// The epilogue activation(x gateᵀ + bias) * (x upᵀ + bias). The weight is gate and up, one after the other,
// and so is the bias; without one any buffer is bound, unread. A pair is a row of gate and the same row of
// up. out: [tokens, pairs].
// needs: linear/fragments/params, gate = linear/fragments/gate_*

struct Params {
  shape: LinearParams,
  pairs: u32,  // rows of gate, and of up
  eps: f32,  // of the norm of x, where it has one
  has_bias: u32,
  bias_stride: u32,  // from a token's bias to the next one's; 0: one for all
}

@group(0) @binding(0) var<storage, read_write> out: array<f32>;
@group(0) @binding(1) var<storage, read> bias: array<f32>;

fn pair_rows(pair: u32) -> vec2u {
  let row = min(pair, params.pairs - 1u);
  return vec2u(row, params.pairs + row);
}

fn store_pair(token: u32, pair: u32, sums: vec2f) {
  var values = sums;
  if (params.has_bias != 0u) {
    let first = token * params.bias_stride + pair;
    values += vec2f(bias[first], bias[first + params.pairs]);
  }
  out[token * params.pairs + pair] = gated(values.x, values.y);
}
