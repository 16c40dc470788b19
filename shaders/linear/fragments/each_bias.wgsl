// out = x weightᵀ + bias: each_residual.wgsl without the residual, for kernels that bind much else.
// needs: nothing

struct Params {
  part_ends: vec4u,  // see row_scales
  part_offsets: vec4u,
  part_strides: vec4u,
  count: u32,  // live lines of x
  pairs: u32,  // of rows
  rows: u32,  // of the weight
  first_row: u32,
  stride: u32,
  quads: u32,  // K / 4
  octets: u32,  // ceil(K / 8)
  octets_per_group: u32,  // for q4gsw alone
  eps: f32,  // of the norm of x, where it has one
  has_bias: u32,
}

@group(0) @binding(0) var<storage, read_write> out: array<f32>;
@group(0) @binding(1) var<storage, read> bias: array<f32>;

fn store(line: u32, row: u32, sum: f32) {
  var value = sum;
  if (params.has_bias != 0u) {
    value += bias[params.first_row + row];
  }
  out[line * params.stride + params.first_row + row] = value;
}
