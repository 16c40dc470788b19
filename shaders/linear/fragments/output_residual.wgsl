// The output x weightᵀ + bias + residual; where there is no bias or residual, any buffer is bound, unread.
// out, residual: [tokens, stride], of which the weight computes the columns from first_row on.
// needs: linear/fragments/params

struct Params {
  shape: LinearParams,
  pairs: u32,  // pairs of rows
  rows: u32,  // of the weight
  first_row: u32,  // column of out that the weight's first row computes
  stride: u32,  // columns of out
  eps: f32,  // of the norm of x, where it has one
  has_bias: u32,
  bias_stride: u32,  // from a token's bias to the next one's; 0: one for all
  has_residual: u32,
}

@group(0) @binding(0) var<storage, read_write> out: array<f32>;
@group(0) @binding(1) var<storage, read> bias: array<f32>;
@group(0) @binding(2) var<storage, read> residual: array<f32>;

fn store(token: u32, row: u32, sum: f32) {
  var value = sum;
  if (params.has_bias != 0u) {
    value += bias[token * params.bias_stride + params.first_row + row];
  }
  let at = token * params.stride + params.first_row + row;
  if (params.has_residual != 0u) {
    value += residual[at];
  }
  out[at] = value;
}
