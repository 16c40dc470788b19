// out = out * rsqrt(mean(out²) + eps) * weight * silu(z), row by row and in place.
// out, z: [rows, width]; weight: [width].
// needs: nothing

struct Params {
  rows: u32,
  width: u32,
  eps: f32,
}

@group(0) @binding(0) var<storage, read> z: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

fn scale_of(sum_of_squares: f32) -> f32 {
  return inverseSqrt(sum_of_squares / f32(params.width) + params.eps);
}

fn finish(first: u32, column: u32, scale: f32) {
  let gate = z[first + column];
  out[first + column] *= scale * weight[column] * gate / (1.0 + exp(-gate));
}
