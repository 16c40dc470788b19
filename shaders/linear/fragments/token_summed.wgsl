// One token that is a sum, computed as it is read by every workgroup for itself:
// (residual + x * rsqrt(mean(x²) + SUM_EPS) * sum_norm) * factor. One workgroup stores it.
// needs: linear/fragments/x

const SUMMED = true;

override SUM_EPS: f32 = 0.0;
override HAS_FACTOR: bool = false;

@group(0) @binding(0) var<storage, read> sum_norm: array<vec4f>;  // [K]
@group(0) @binding(1) var<storage, read> added_to: array<vec4f>;  // [K]: the residual
@group(0) @binding(2) var<storage, read> sum_factor: array<f32>;  // [1]; any buffer without HAS_FACTOR
@group(0) @binding(3) var<storage, read_write> token_sum: array<vec4f>;  // [K]

var<private> token_scale: f32;
var<private> token_factor: f32;
var<private> token_writes: bool;

// This invocation's share of the squares that the norm divides by.
fn token_squares(first: u32, step: u32) -> f32 {
  var squares = 0.0;
  for (var quad = first; quad < params.shape.quads; quad += step) {
    squares += dot(x[quad], x[quad]);
  }
  return squares;
}

// Takes the sum of all shares before the first octet is read; `writes`: this invocation stores what it reads.
fn begin_token(squares: f32, writes: bool) {
  token_scale = inverseSqrt(squares / f32(4u * params.shape.quads) + SUM_EPS);
  token_factor = 1.0;
  if (HAS_FACTOR) {
    token_factor = sum_factor[0];
  }
  token_writes = writes;
}

fn summed_quad(quad: u32, value: vec4f) -> vec4f {
  if (quad >= params.shape.quads) {
    return vec4f();
  }
  let total = (added_to[quad] + value * token_scale * sum_norm[quad]) * token_factor;
  if (token_writes) {
    token_sum[quad] = total;
  }
  return total;
}

fn token_octet(octet: u32) -> mat2x4f {
  let raw = x_octet(0u, octet);
  return mat2x4f(summed_quad(2u * octet, raw[0]), summed_quad(2u * octet + 1u, raw[1]));
}
