// The output x weightᵀ + bias: output_residual.wgsl without the residual, for kernels that bind many buffers.
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
}

@group(0) @binding(0) var<storage, read_write> out: array<f32>;
@group(0) @binding(1) var<storage, read> bias: array<f32>;

fn store(token: u32, row: u32, sum: f32) {
  var value = sum;
  if (params.has_bias != 0u) {
    value += bias[token * params.bias_stride + params.first_row + row];
  }
  out[token * params.stride + params.first_row + row] = value;
}
