// The output (x weightᵀ) * factors: what low-rank adapters make of x, each row times its adapter's strength.
// out: [tokens, stride]; factors: [stride].
// needs: linear/fragments/params

struct Params {
  shape: LinearParams,
  pairs: u32,  // pairs of rows
  rows: u32,  // of the weight
  first_row: u32,  // column of out that the weight's first row computes
  stride: u32,  // columns of out
  eps: f32,  // of the norm of x, where it has one
}

@group(0) @binding(0) var<storage, read_write> out: array<f32>;
@group(0) @binding(1) var<storage, read> factors: array<f32>;

fn store(token: u32, row: u32, sum: f32) {
  let column = params.first_row + row;
  out[token * params.stride + column] = sum * factors[column];
}
