// The one line of x is a sum that is computed on the way, by every workgroup for itself:
// (residual + x * rsqrt(mean(x²) + SUM_EPS) * sum_norm) * factor. One of them writes it down.
// needs: linear/fragments/x

const SUMMED = true;

override SUM_EPS: f32 = 0.0;
override HAS_FACTOR: bool = false;

@group(0) @binding(0) var<storage, read> sum_norm: array<vec4f>;  // [K]
@group(0) @binding(1) var<storage, read> added_to: array<vec4f>;  // [K]: the residual
@group(0) @binding(2) var<storage, read> sum_factor: array<f32>;  // [1]; any buffer without HAS_FACTOR
@group(0) @binding(3) var<storage, read_write> row_sum: array<vec4f>;  // [K]

var<private> row_scale: f32;
var<private> row_factor: f32;
var<private> row_writes: bool;

// This invocation's share of the squares that the norm divides by.
fn row_squares(first: u32, step: u32) -> f32 {
  var squares = 0.0;
  for (var quad = first; quad < params.quads; quad += step) {
    squares += dot(x[quad], x[quad]);
  }
  return squares;
}

// With all shares, before the first octet; whether this invocation writes down what it takes.
fn begin_row(squares: f32, writes: bool) {
  row_scale = inverseSqrt(squares / f32(4u * params.quads) + SUM_EPS);
  row_factor = 1.0;
  if (HAS_FACTOR) {
    row_factor = sum_factor[0];
  }
  row_writes = writes;
}

fn summed_quad(quad: u32, value: vec4f) -> vec4f {
  if (quad >= params.quads) {
    return vec4f();
  }
  let total = (added_to[quad] + value * row_scale * sum_norm[quad]) * row_factor;
  if (row_writes) {
    row_sum[quad] = total;
  }
  return total;
}

fn row_octet(octet: u32) -> mat2x4f {
  let raw = x_octet(0u, octet);
  return mat2x4f(summed_quad(2u * octet, raw[0]), summed_quad(2u * octet + 1u, raw[1]));
}
