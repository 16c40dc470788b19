// One token as GEMV kernels read it. Where x is normalised first, its columns come times the norm's weight,
// and the squares that the norm divides by are added up on the way.
// needs: linear/fragments/io, shared/octets, token = linear/fragments/token_*

override NORMED: bool = false;

@group(0) @binding(0) var<storage, read> norm: array<vec4f>;  // [K]; any buffer if not NORMED

struct Octet {
  values: mat2x4f,
  sum: f32,
  squares: f32,  // of x before the norm's weight
}

fn normed_octet(octet: u32) -> Octet {
  let raw = token_octet(octet);
  if (!NORMED) {
    return Octet(raw, octet_sum(raw), 0.0);
  }
  // x is zero past the end
  let last = select(params.shape.quads - 1u, 2u * octet + 1u, WHOLE_K);
  let values = mat2x4f(
    raw[0] * norm[min(2u * octet, last)],
    raw[1] * norm[min(2u * octet + 1u, last)],
  );
  return Octet(values, octet_sum(values), dot(raw[0], raw[0]) + dot(raw[1], raw[1]));
}

// The factor of all sums of products that the norm leaves to the end.
fn norm_scale(squares: f32) -> f32 {
  if (!NORMED) {
    return 1.0;
  }
  return inverseSqrt(squares / f32(4u * params.shape.quads) + params.eps);
}
