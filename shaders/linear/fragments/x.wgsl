// x as it is, for kernels that multiply floats.
// needs: linear/fragments/io

@group(0) @binding(0) var<storage, read> x: array<vec4f>;

// Eight columns of x, zeros past the end of the line.
fn x_octet(line: u32, octet: u32) -> mat2x4f {
  let start = line * params.quads;
  if (WHOLE_LINES) {
    return mat2x4f(x[start + 2u * octet], x[start + 2u * octet + 1u]);
  }
  let low = x[start + min(2u * octet, params.quads - 1u)];
  let high = x[start + min(2u * octet + 1u, params.quads - 1u)];
  return mat2x4f(
    select(vec4f(), low, 2u * octet < params.quads),
    select(vec4f(), high, 2u * octet + 1u < params.quads),
  );
}
