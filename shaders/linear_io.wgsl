// What every linear kernel reads and writes: out = x weightᵀ + bias.
// x: [count, K], K a multiple of 4; weight: [rows, K], in a weight_*.wgsl file; out: [count, rows].

struct Params {
  count: u32,  // live rows of x
  rows: u32,  // of the weight
  quads: u32,  // K / 4
  octets: u32,  // ceil(K / 8)
  octets_per_group: u32,  // this and the strides of the scales are for weight_q4gsw alone
  row_stride: u32,
  group_stride: u32,
  has_bias: u32,
}

@group(0) @binding(0) var<storage, read_write> out: array<f32>;
@group(0) @binding(1) var<uniform> params: Params;
@group(0) @binding(2) var<storage, read> x: array<vec4f>;

// Eight columns of x, zeros past the end of the row.
fn x_octet(line: u32, octet: u32) -> mat2x4f {
  let start = line * params.quads;
  let low = x[start + min(2u * octet, params.quads - 1u)];
  let high = x[start + min(2u * octet + 1u, params.quads - 1u)];
  return mat2x4f(
    select(vec4f(), low, 2u * octet < params.quads),
    select(vec4f(), high, 2u * octet + 1u < params.quads),
  );
}

fn store(line: u32, row: u32, value: f32) {
  var bias_value = 0.0;
  if (params.has_bias != 0u) {
    bias_value = bias[row];
  }
  out[line * params.rows + row] = value + bias_value;
}
