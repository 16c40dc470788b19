// Plain f32 weights of a linear, K / 4 vectors a row, and its bias (without one any buffer stands
// in its place, unread).

@group(0) @binding(3) var<storage, read> weight: array<vec4f>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;

fn quants(row: u32, octet: u32) -> mat2x4f {
  let start = row * params.quads;
  let last = params.quads - 1u;  // x is zero past it
  return mat2x4f(weight[start + 2u * octet], weight[start + min(2u * octet + 1u, last)]);
}

fn affine(row: u32, octet: u32) -> vec2f {
  return vec2f(1.0, 0.0);
}
