// x in floats, for kernels that multiply floats.
// needs: linear/fragments/io

@group(0) @binding(0) var<storage, read> x: array<vec4f>;

// Eight columns of x, zeros past the end of K.
fn x_octet(token: u32, octet: u32) -> mat2x4f {
  let start = token * params.shape.quads;
  if (WHOLE_K) {
    return mat2x4f(x[start + 2u * octet], x[start + 2u * octet + 1u]);
  }
  let low = x[start + min(2u * octet, params.shape.quads - 1u)];
  let high = x[start + min(2u * octet + 1u, params.shape.quads - 1u)];
  return mat2x4f(
    select(vec4f(), low, 2u * octet < params.shape.quads),
    select(vec4f(), high, 2u * octet + 1u < params.shape.quads),
  );
}
